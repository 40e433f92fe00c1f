// wgmma_dot threads=256 stages=4 group_m=8 store_stages=4; predicted 16.8 us
// matmul_add_add_6_partial: mul_out bf16[2048,3072], pw bf16[3072,768] -> partial f32[2,2048,768]
// schedule: wgmma_dot threads=256 stages=4 group_m=8 store_stages=4
// tiles [128,192]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 24 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/tile_store.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n192.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) matmul_add_add_6_partial(const bf16* __restrict__ mul_out, const bf16* __restrict__ pw, f32* __restrict__ partial, const __grid_constant__ TensorMap mul_out_map, const __grid_constant__ TensorMap pw_map, const __grid_constant__ TensorMap partial_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using A = Block<bf16, 128, 64, Major::k>;
  using B = Block<bf16, 192, 64, Major::mn>;
  const u32 a_blocks = block_stage(), b_blocks = a_blocks + 4 * A::bytes;
  __shared__ TmaPipeline<4> pipeline;
  open_pipeline<2, 1>(pipeline);
  PipelineState<4> state(barriers_of(pipeline));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<40>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
        const GridPoint point = tile_swizzle<8>(program, 4, 16);
        const i32 program_2 = program / 64;
        const i32 index = program_2 * 1536;
        const i32 index_2 = index + 1536;
        const i32 program_1 = point.y;
        const i32 first_row = program_1 * 128;
        const i32 program_0 = point.x;
        const i32 first_column = program_0 * 192;
        for (i64 depth = index; depth < index_2; depth += 64) {
          Barrier& full = refill(pipeline, state, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + state.stage * A::bytes, mul_out_map, full, i32(depth), first_row);
          tma_load_panels<3, B::panel_bytes, 64>(b_blocks + state.stage * B::bytes, pw_map, full, first_column, i32(depth));
          state.next();
        }
      }
    }
  } else {
    registers_up<232>();
    const int group = warpgroup();
    TmaStoreStages<4, 1> store_stages{b_blocks + 4 * B::bytes + u32(group) * 4 * kPieceBytes};
    for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
      const GridPoint point = tile_swizzle<8>(program, 4, 16);
      const i32 program_0 = point.x;
      const i32 program_1 = point.y;
      const i32 program_2 = program / 64;
      const i32 first_column = program_0 * 192;
      const i32 first_row = program_1 * 128;
      const i32 index = program_2 * 1536;
      const i32 index_2 = index + 1536;

      Vec<f32, 2> acc[2][24];
      keep_step<256>();
      for (i64 depth = index; depth < index_2; depth += 64) {
        wait_full(state);
        wgmma_block<A, B, 2>(acc, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, group, depth > index);
        wgmma_wait<1>();
        if (depth > index) release_previous<1>(state);
        state.next();
      }
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(state);

#pragma unroll
      for (int panel = 0; panel < 6; ++panel) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = half;
          Vec<f32, 2> partial_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = panel * 4 + part;
            partial_parts[part] = acc[r][c];
          }
          put(store_stages.piece(0), half, 0, partial_parts);
        }
        end_of_pieces(store_stages, group);
        send(store_stages, partial_map, first_column + panel * 32, first_row + group * 64, program_2);
      }
    }
    close_store_stages();
  }
  close_pipeline<1>();
}

}  // namespace tw
