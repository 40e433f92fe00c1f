// matmul: a bf16[1,8192,768], b bf16[1,768,3072], bias f32[3072] -> c bf16[1,8192,3072]
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

extern "C" __global__ void __launch_bounds__(384, 1) matmul(const bf16* __restrict__ a, const bf16* __restrict__ b, bf16* __restrict__ c_, const f32* __restrict__ bias, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const __grid_constant__ TensorMap c_map) {
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
        const i32 program_2 = program / 1024;
        const i32 program_1 = point.y;
        const i32 index_2 = program_1 * 128;
        const i32 program_0 = point.x;
        const i32 index = program_0 * 192;
        for (i64 k = 0; k < 768; k += 64) {
          Barrier& full = refill(pipeline, state, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + state.stage * A::bytes, a_map, full, i32(k), index_2, program_2);
          tma_load_panels<3, B::panel_bytes, 64>(b_blocks + state.stage * B::bytes, b_map, full, index, i32(k), program_2);
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
      const i32 program_2 = program / 1024;
      const i32 index = program_0 * 192;
      const i32 index_2 = program_1 * 128;

      Vec<f32, 2> acc[4][24];
      state.skip(passed * 12);
      passed = 1;
      pingpong_wait(group);
      for (i64 k = 0; k < 768; k += 64) {
        wait_full(state);
        wgmma_block<A, B, 1>(acc, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, 0, k > 0);
        wgmma_wait<1>();
        if (k > 0) release_previous<1>(state);
        state.next();
      }
      pingpong_signal<2>(group);
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(state);

#pragma unroll
      for (int panel = 0; panel < 3; ++panel) {
        Vec<f32, 2> bias_in[24];
        const f32* const bias_at = bias + index + t * 2;
#pragma unroll
        for (int part = 0; part < 8; ++part) {
          const int c = panel * 8 + part;
          bias_in[c] = load<2, Cache::constant>(bias_at + c * 8);
        }
#pragma unroll
        for (int block = 0; block < 2; ++block) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int r = block * 2 + half;
#pragma unroll
            for (int quad = 0; quad < 2; ++quad) {
              Vec<bf16, 2> c_parts[4];
#pragma unroll
              for (int part = 0; part < 4; ++part) {
                const int c = (panel * 2 + quad) * 4 + part;
                Vec<f32, 2> c_out;
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  const f32 sum = acc[r][c].v[v] + bias_in[c].v[v];
                  const f32 sum_2 = sum + 0.044715f * sum * sum * sum;
                  const f32 product = 0.5f * sum * fast::one_plus_tanh(0.7978846f * sum_2);
                  c_out.v[v] = product;
                }
                c_parts[part] = from_f32<bf16>(c_out);
              }
              put(store_stages.piece(0), half, quad * 4, c_parts);
            }
          }
          end_of_pieces(store_stages, group);
          send(store_stages, c_map, index + panel * 64, index_2 + block * 64, program_2);
        }
      }
    }
    close_store_stages();
  }
  close_pipeline<1>();
}

}  // namespace tw
