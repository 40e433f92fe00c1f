// wgmma_pingpong threads=256 stages=4 group_m=16 store_stages=4; predicted 63.7 us
// matmul_add_mul_mul_0: x bf16[8192,768], w bf16[768,3072], b bf16[3072] -> out bf16[8192,3072]
// schedule: wgmma_pingpong threads=256 stages=4 group_m=16 store_stages=4
// tiles [128,192]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 4 rows, 24 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/tile_store.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n192.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) matmul_add_mul_mul_0(const bf16* __restrict__ x, const bf16* __restrict__ w, bf16* __restrict__ out, const bf16* __restrict__ b, const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap w_map, const __grid_constant__ TensorMap out_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) % 128 / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using A = Block<bf16, 128, 64, Major::k>;
  using B = Block<bf16, 192, 64, Major::mn>;
  const u32 a_blocks = block_stage(), b_blocks = a_blocks + 4 * A::bytes;
  __shared__ TmaPipeline<4> pipeline;
  open_pipeline<1, 1>(pipeline);
  PipelineState<4> state(barriers_of(pipeline));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 1024; program += i32(gridDim.x)) {
        const GridPoint point = tile_swizzle<16>(program, 16, 64);
        const i32 program_1 = point.y;
        const i32 first_row = program_1 * 128;
        const i32 program_0 = point.x;
        const i32 first_column = program_0 * 192;
        for (i64 depth = 0; depth < 768; depth += 64) {
          Barrier& full = refill(pipeline, state, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + state.stage * A::bytes, x_map, full, i32(depth), first_row);
          tma_load_panels<3, B::panel_bytes, 64>(b_blocks + state.stage * B::bytes, w_map, full, first_column, i32(depth));
          state.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    if (group == 1) pingpong_signal<2>(group);
    TmaStoreStages<4, 1> store_stages{b_blocks + 4 * B::bytes + u32(group) * 4 * kPieceBytes};
    u32 passed = u32(group);  // programs of the others since the last own one
    for (i32 program = i32(blockIdx.x) + group * i32(gridDim.x); program < 1024; program += 2 * i32(gridDim.x)) {
      const GridPoint point = tile_swizzle<16>(program, 16, 64);
      const i32 program_0 = point.x;
      const i32 program_1 = point.y;
      const i32 first_column = program_0 * 192;
      const i32 first_row = program_1 * 128;

      Vec<f32, 2> acc[4][24];
      state.skip(passed * 12);
      passed = 1;
      pingpong_wait(group);
      for (i64 depth = 0; depth < 768; depth += 64) {
        wait_full(state);
        wgmma_block<A, B, 1>(acc, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, 0, depth > 0);
        wgmma_wait<1>();
        if (depth > 0) release_previous<1>(state);
        state.next();
      }
      pingpong_signal<2>(group);
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(state);

#pragma unroll
      for (int panel = 0; panel < 3; ++panel) {
        Vec<bf16, 2> b_in[24];
        const bf16* const b_at = b + first_column + t * 2;
#pragma unroll
        for (int part = 0; part < 8; ++part) {
          const int c = panel * 8 + part;
          b_in[c] = load<2, Cache::constant>(b_at + c * 8);
        }
#pragma unroll
        for (int block = 0; block < 2; ++block) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int r = block * 2 + half;
#pragma unroll
            for (int quad = 0; quad < 2; ++quad) {
              Vec<bf16, 2> out_parts[4];
#pragma unroll
              for (int part = 0; part < 4; ++part) {
                const int c = (panel * 2 + quad) * 4 + part;
                const Vec<f32, 2> b_in_f32 = to_f32(b_in[c]);
                Vec<f32, 2> out_out;
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  const f32 sum = acc[r][c].v[v] + b_in_f32.v[v];
                  const f32 product = sum * (sum * sum * 0.071354814f + 1.5957692f);
                  out_out.v[v] = sum * fast::sigmoid(product);
                }
                out_parts[part] = from_f32<bf16>(out_out);
              }
              put(store_stages.piece(0), half, quad * 4, out_parts);
            }
          }
          end_of_pieces(store_stages, group);
          send(store_stages, out_map, first_column + panel * 64, first_row + block * 64);
        }
      }
    }
    close_store_stages();
  }
  close_pipeline<1>();
}

}  // namespace tw
