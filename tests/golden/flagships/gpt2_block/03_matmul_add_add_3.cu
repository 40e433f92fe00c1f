// wgmma_dot threads=256 stages=6 group_m=16 tma_store_stages=2; predicted 9.1 us
// matmul_add_add_3: t85 bf16[2048,768], ow bf16[768,768], x bf16[2048,768], ob bf16[768] -> t91 bf16[2048,768]
// schedule: wgmma_dot threads=256 stages=6 group_m=16 tma_store_stages=2
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/tile_store.cuh"
#include "tw_cuda/wgmma_dot.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) matmul_add_add_3(const bf16* __restrict__ t85, const bf16* __restrict__ ow, bf16* __restrict__ t91, const bf16* __restrict__ x, const bf16* __restrict__ ob, const __grid_constant__ TensorMap t85_map, const __grid_constant__ TensorMap ow_map, const __grid_constant__ TensorMap t91_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using A = Block<bf16, 128, 64, Major::k>;
  using B = Block<bf16, 128, 64, Major::mn>;
  const u32 a_blocks = block_stage(), b_blocks = a_blocks + 6 * A::bytes;
  __shared__ TmaPipeline<6> ring;
  open_pipeline<2, 1>(ring);
  PipelineState<6> turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<40>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 96; program += i32(gridDim.x)) {
        const Place place = group_m<16>(program, 6, 16);
        const i32 program_1 = place.y;
        const i32 index_2 = program_1 * 128;
        const i32 program_0 = place.x;
        const i32 index = program_0 * 128;
        for (i64 k = 0; k < 768; k += 64) {
          Barrier& full = refill(ring, turn, A::bytes + B::bytes);
          tma_load_panels<1, A::panel_bytes, 64>(a_blocks + turn.place * A::bytes, t85_map, full, i32(k), index_2);
          tma_load_panels<2, B::panel_bytes, 64>(b_blocks + turn.place * B::bytes, ow_map, full, index, i32(k));
          turn.next();
        }
      }
    }
  } else {
    registers_up<232>();
    const int group = warpgroup();
    TmaStoreStages<2> store_stages{b_blocks + 6 * B::bytes + u32(group) * 2 * kPieceBytes, 0};
    for (i32 program = i32(blockIdx.x); program < 96; program += i32(gridDim.x)) {
      const Place place = group_m<16>(program, 6, 16);
      const i32 program_0 = place.x;
      const i32 program_1 = place.y;
      const i32 index = program_0 * 128;
      const i32 index_2 = program_1 * 128;

      Vec<f32, 2> acc[2][16];
      keep_step<256>();
      for (i64 k = 0; k < 768; k += 64) {
        wait_full(ring, turn);
        wgmma_block<A, B, 2>(acc, a_blocks + turn.place * A::bytes, b_blocks + turn.place * B::bytes, group, k > 0);
        wgmma_wait<1>();
        if (k > 0) release_previous<1>(ring, turn);
        turn.next();
      }
      wgmma_wait<0>();
      wgmma_pin(acc);
      release_previous<1>(ring, turn);

      Vec<bf16, 2> x_in[2][16];
      const bf16* const x_at = x + index_2 * 768 + index + g * 768 + t * 2;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
          x_in[r][c] = load<2, Cache::stream_constant>(x_at + r * 6144 + c * 8);
        }
      }
      Vec<bf16, 2> ob_in[16];
      const bf16* const ob_at = ob + index + t * 2;
#pragma unroll
      for (int c = 0; c < 16; ++c) {
        ob_in[c] = load<2, Cache::constant>(ob_at + c * 8);
      }
#pragma unroll
      for (int panel = 0; panel < 2; ++panel) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = half;
#pragma unroll
          for (int quad = 0; quad < 2; ++quad) {
            Vec<bf16, 2> t91_parts[4];
#pragma unroll
            for (int part = 0; part < 4; ++part) {
              const int c = (panel * 2 + quad) * 4 + part;
              const Vec<f32, 2> x_in_f32 = to_f32(x_in[r][c]);
              const Vec<f32, 2> ob_in_f32 = to_f32(ob_in[c]);
              Vec<f32, 2> t91_out;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                t91_out.v[v] = (x_in_f32.v[v] + acc[r][c].v[v]) + ob_in_f32.v[v];
              }
              t91_parts[part] = from_f32<bf16>(t91_out);
            }
            put(store_stages.piece(), half, quad * 4, t91_parts);
          }
        }
        send(store_stages, t91_map, group, index + panel * 64, index_2 + group * 64);
      }
    }
    close_store_stages();
  }
  close_pipeline<1>();
}

}  // namespace tw
