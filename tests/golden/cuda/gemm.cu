// matmul: a bf16[1,8192,768], b bf16[1,768,3072] -> c bf16[1,8192,3072]
// schedule: wgmma_dot threads=256 stages=4 group_m=16
// tiles [128,256]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 32 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n256.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) matmul(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c_, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using A = Block<bf16, 128, 64, Major::k>;
  using B = Block<bf16, 256, 64, Major::mn>;
  const u32 a_blocks = block_stage(), b_blocks = a_blocks + 4 * A::bytes;
  __shared__ TmaPipeline<4> pipeline;
  open_pipeline<2, 1>(pipeline);
  PipelineState<4> state(barriers_of(pipeline));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<40>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 768; program += i32(gridDim.x)) {
        const GridPoint point = tile_swizzle<16>(program, 12, 64);
        const i32 program_2 = program / 768;
        const i32 program_1 = point.y;
        const i32 index_2 = program_1 * 128;
        const i32 program_0 = point.x;
        const i32 index = program_0 * 256;
        for (i64 k = 0; k < 768; k += 64) {
          Barrier& full = refill(pipeline, state, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + state.stage * A::bytes, a_map, full, i32(k), index_2, program_2);
          tma_load_panels<4, B::panel_bytes, 64>(b_blocks + state.stage * B::bytes, b_map, full, index, i32(k), program_2);
          state.next();
        }
      }
    }
  } else {
    registers_up<232>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 768; program += i32(gridDim.x)) {
      const GridPoint point = tile_swizzle<16>(program, 12, 64);
      const i32 program_0 = point.x;
      const i32 program_1 = point.y;
      const i32 program_2 = program / 768;
      const i32 index = program_0 * 256;
      const i32 index_2 = program_1 * 128;

      Vec<f32, 2> acc[2][32];
      keep_step<256>();
      for (i64 k = 0; k < 768; k += 64) {
        wait_full(state);
        wgmma_block<A, B, 2>(acc, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, group, k > 0);
        wgmma_wait<1>();
        if (k > 0) release_previous<1>(state);
        state.next();
      }
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(state);

      bf16* const c_at = c_ + program_2 * 25165824 + index_2 * 3072 + index + g * 3072 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 8; ++wide) {
          Vec<bf16, 2> c_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> c_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              c_out.v[v] = acc[r][c].v[v];
            }
            c_parts[part] = from_f32<bf16>(c_out);
          }
          const int c = wide;
          store(c_at + r * 24576 + c * 32, across_quad(c_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
