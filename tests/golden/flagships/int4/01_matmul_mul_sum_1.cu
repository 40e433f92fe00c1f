// threads=128 threads_per_row=4 vector_bytes=16 stages=7 dot=wgmma; predicted 10.7 us
// matmul_mul_sum_1: scales bf16[32,4096], x bf16[32,64,128], t18 bf16[32,4096,128] -> t24 bf16[64,4096]
// schedule: threads=128 threads_per_row=4 vector_bytes=16 stages=7 dot=wgmma
// tiles [64,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/wgmma_dot.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256, 1) matmul_mul_sum_1(const bf16* __restrict__ scales, const bf16* __restrict__ x, const bf16* __restrict__ t18, bf16* __restrict__ t24, const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap t18_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using x_block = Block<bf16, 64, 128, Major::k>;
  const u32 x_blocks = block_stage();
  using t18_block = Block<bf16, 64, 128, Major::mn>;
  const u32 t18_blocks = x_blocks + 7 * x_block::bytes;
  __shared__ TmaPipeline<7> x_ring;
  open_pipeline<1, 1>(x_ring);
  PipelineState<7> x_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 128) {
    registers_down<56>();
    if (threadIdx.x == 128) {
      for (i32 program = i32(blockIdx.x); program < 64; program += i32(gridDim.x)) {
        const i32 program_0 = program;
        const i32 v2 = program_0 * 64;
        for (i64 v10 = 0; v10 < 32; v10 += 1) {
          Barrier& x_full = refill(x_ring, x_turn, x_block::bytes + t18_block::bytes);
          tma_load_panels<2, x_block::panel_bytes, 64>(x_blocks + x_turn.place * x_block::bytes, x_map, x_full, 0, 0, i32(v10));
          tma_load_panels<1, t18_block::panel_bytes, 64>(t18_blocks + x_turn.place * t18_block::bytes, t18_map, x_full, v2, 0, i32(v10));
          x_turn.next();
        }
      }
    }
  } else {
    registers_up<256>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 64; program += i32(gridDim.x)) {
      const i32 program_0 = program;
      const i32 v2 = program_0 * 64;

      Vec<f32, 2> v11[2][8];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v11[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<bf16, 2> v12[8];
      Vec<f32, 2> v17[2][8];
      Vec<bf16, 2> v12_next[8];
      const i64 v10_end = 32, v10_step = 1;
      {
        const i32 v10 = i32(0);
        const bf16* const scales_at = scales + v10 * 4096 + v2 + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          v12[c] = load<2, Cache::constant>(scales_at + c * 8);
        }
#pragma unroll
        for (int c = 0; c < 8; ++c) {
        }
      }
      for (i64 v10_i = 0; v10_i < v10_end; v10_i += 2 * v10_step) {
        wait_full(x_ring, x_turn);
        wgmma_block<x_block, t18_block, 1>(v17, x_blocks + x_turn.place * x_block::bytes, t18_blocks + x_turn.place * t18_block::bytes, group, false);
        if (v10_i + v10_step < v10_end) {
          {
            const i32 v10 = i32(v10_i + v10_step);
            const bf16* const scales_at_2 = scales + v10 * 4096 + v2 + t * 2;
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v12_next[c] = load<2, Cache::constant>(scales_at_2 + c * 8);
            }
#pragma unroll
            for (int c = 0; c < 8; ++c) {
            }
          }
        }
        wgmma_wait<0>();
        release<1>(x_ring, x_turn.place);
        x_turn.next();
        wgmma_pin(v17);
        {
          const i32 v10 = i32(v10_i);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              opaque(v12[c]);
              const Vec<f32, 2> v12_f32 = to_f32(v12[c]);
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v11[r][c].v[v] = v11[r][c].v[v] + (v17[r][c].v[v] * v12_f32.v[v]);
              }
            }
          }
        }
        if (v10_i + v10_step < v10_end) {
          wait_full(x_ring, x_turn);
          wgmma_block<x_block, t18_block, 1>(v17, x_blocks + x_turn.place * x_block::bytes, t18_blocks + x_turn.place * t18_block::bytes, group, false);
          if (v10_i + v10_step + v10_step < v10_end) {
            {
              const i32 v10 = i32(v10_i + v10_step + v10_step);
              const bf16* const scales_at_3 = scales + v10 * 4096 + v2 + t * 2;
#pragma unroll
              for (int c = 0; c < 8; ++c) {
                v12[c] = load<2, Cache::constant>(scales_at_3 + c * 8);
              }
#pragma unroll
              for (int c = 0; c < 8; ++c) {
              }
            }
          }
          wgmma_wait<0>();
          release<1>(x_ring, x_turn.place);
          x_turn.next();
          wgmma_pin(v17);
          {
            const i32 v10 = i32(v10_i + v10_step);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
#pragma unroll
              for (int c = 0; c < 8; ++c) {
                opaque(v12_next[c]);
                const Vec<f32, 2> v12_next_f32 = to_f32(v12_next[c]);
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  v11[r][c].v[v] = v11[r][c].v[v] + (v17[r][c].v[v] * v12_next_f32.v[v]);
                }
              }
            }
          }
        }
      }

      bf16* const t24_at = t24 + v2 + g * 4096 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 2; ++wide) {
          Vec<bf16, 2> t24_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t24_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t24_out.v[v] = v11[r][c].v[v];
            }
            t24_parts[part] = from_f32<bf16>(t24_out);
          }
          const int c = wide;
          store(t24_at + r * 32768 + c * 32, across_quad(t24_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
