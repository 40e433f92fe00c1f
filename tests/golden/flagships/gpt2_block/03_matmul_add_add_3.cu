// wgmma_dot threads=256 stages=6 group_m=8 store_stages=2; predicted 10.1 us
// matmul_add_add_3: transpose_out bf16[2048,768], ow bf16[768,768], x bf16[2048,768], ob bf16[768] -> add_out bf16[2048,768]
// schedule: wgmma_dot threads=256 stages=6 group_m=8 store_stages=2
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/tile_store.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n128.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) matmul_add_add_3(const bf16* __restrict__ transpose_out, const bf16* __restrict__ ow, bf16* __restrict__ add_out, const bf16* __restrict__ x, const bf16* __restrict__ ob, const __grid_constant__ TensorMap transpose_out_map, const __grid_constant__ TensorMap ow_map, const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap add_out_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  __shared__ Barrier tile_full[2][2];
  open_tile_stages(tile_full);
  using A = Block<bf16, 128, 64, Major::k>;
  using B = Block<bf16, 128, 64, Major::mn>;
  const u32 a_blocks = block_stage(), b_blocks = a_blocks + 6 * A::bytes;
  __shared__ TmaPipeline<6> pipeline;
  open_pipeline<2, 1>(pipeline);
  PipelineState<6> state(barriers_of(pipeline));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<40>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 96; program += i32(gridDim.x)) {
        const GridPoint point = tile_swizzle<8>(program, 6, 16);
        const i32 program_1 = point.y;
        const i32 first_row = program_1 * 128;
        const i32 program_0 = point.x;
        const i32 first_column = program_0 * 128;
        for (i64 depth = 0; depth < 768; depth += 64) {
          Barrier& full = refill(pipeline, state, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + state.stage * A::bytes, transpose_out_map, full, i32(depth), first_row);
          tma_load_panels<2, B::panel_bytes, 64>(b_blocks + state.stage * B::bytes, ow_map, full, first_column, i32(depth));
          state.next();
        }
      }
    }
  } else {
    registers_up<232>();
    const int group = warpgroup();
    TmaTileStages<2, 1, 1> store_stages{b_blocks + 6 * B::bytes + u32(group) * 2 * kPieceBytes, tile_full[group]};
    for (i32 program = i32(blockIdx.x); program < 96; program += i32(gridDim.x)) {
      const GridPoint point = tile_swizzle<8>(program, 6, 16);
      const i32 program_0 = point.x;
      const i32 program_1 = point.y;
      const i32 first_column = program_0 * 128;
      const i32 first_row = program_1 * 128;

      Vec<f32, 2> acc[2][16];
      fetch<0>(store_stages, 0, x_map, first_column, first_row + group * 64);
      fetch<0>(store_stages, 1, x_map, first_column + 64, first_row + group * 64);
      keep_step<256>();
      for (i64 depth = 0; depth < 768; depth += 64) {
        wait_full(state);
        wgmma_block<A, B, 2>(acc, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, group, depth > 0);
        wgmma_wait<1>();
        if (depth > 0) release_previous<1>(state);
        state.next();
      }
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(state);

      Vec<bf16, 2> ob_in[16];
      const bf16* const ob_at = ob + first_column + t * 2;
#pragma unroll
      for (int c = 0; c < 16; ++c) {
        ob_in[c] = load<2, Cache::constant>(ob_at + c * 8);
      }
#pragma unroll
      for (int panel = 0; panel < 2; ++panel) {
        store_stages.wait();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = half;
          Vec<bf16, 2> x_in[2][16];
#pragma unroll
          for (int quad = 0; quad < 2; ++quad) {
            const int c = (panel * 2 + quad) * 4;
            get(store_stages.piece(0), half, quad * 4, &x_in[r][c]);
          }
#pragma unroll
          for (int quad = 0; quad < 2; ++quad) {
            Vec<bf16, 2> add_out_parts[4];
#pragma unroll
            for (int part = 0; part < 4; ++part) {
              const int c = (panel * 2 + quad) * 4 + part;
              const Vec<f32, 2> x_in_f32 = to_f32(x_in[r][c]);
              const Vec<f32, 2> ob_in_f32 = to_f32(ob_in[c]);
              Vec<f32, 2> add_out_out;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                add_out_out.v[v] = x_in_f32.v[v] + acc[r][c].v[v] + ob_in_f32.v[v];
              }
              add_out_parts[part] = from_f32<bf16>(add_out_out);
            }
            put(store_stages.piece(0), half, quad * 4, add_out_parts);
          }
        }
        end_of_pieces(store_stages, group);
        send(store_stages, add_out_map, first_column + panel * 64, first_row + group * 64);
      }
    }
    close_store_stages();
  }
  close_pipeline<1>();
}

}  // namespace tw
