// wgmma_scaled threads=128 stages=7; predicted 10.7 us
// matmul_mul_sum_1: scales bf16[32,4096], x bf16[32,64,128], reshape_out bf16[32,4096,128] -> out bf16[64,4096]
// schedule: wgmma_scaled threads=128 stages=7
// tiles [64,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n64.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256, 1) matmul_mul_sum_1(const bf16* __restrict__ scales, const bf16* __restrict__ x, const bf16* __restrict__ reshape_out, bf16* __restrict__ out, const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap reshape_out_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using x_block = Block<bf16, 64, 128, Major::k>;
  const u32 x_blocks = uniform(block_stage());
  using reshape_out_block = Block<bf16, 64, 128, Major::mn>;
  const u32 reshape_out_blocks = x_blocks + 7 * x_block::bytes;
  __shared__ TmaPipeline<7> x_pipeline;
  open_pipeline<1, 1>(x_pipeline);
  PipelineState<7> x_state(uniform(barriers_of(x_pipeline)));
  wait_for_previous_kernel();
  if (threadIdx.x >= 128) {
    registers_down<56>();
    if (threadIdx.x == 128) {
      for (i32 program = i32(blockIdx.x); program < 64; program += i32(gridDim.x)) {
        const i32 program_0 = program;
        const i32 first_column = program_0 * 64;
        for (i64 column = 0; column < 32; column += 1) {
          Barrier& x_full = refill(x_pipeline, x_state, x_block::bytes + reshape_out_block::bytes);
          tma_load_panels<2, x_block::panel_bytes, 64>(x_blocks + x_state.stage * x_block::bytes, x_map, x_full, 0, 0, i32(column));
          tma_load_panels<1, reshape_out_block::panel_bytes, 64>(reshape_out_blocks + x_state.stage * reshape_out_block::bytes, reshape_out_map, x_full, first_column, 0, i32(column));
          x_state.next();
        }
      }
    }
  } else {
    registers_up<256>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 64; program += i32(gridDim.x)) {
      const i32 program_0 = program;
      const i32 first_column = program_0 * 64;

      Vec<f32, 2> running_sum[2][8];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            running_sum[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<bf16, 2> scales_in[8];
      Vec<f32, 2> product[2][8];
      Vec<bf16, 2> scales_in_next[8];
      const i64 column_end = 32, column_step = 1;
      {
        const i32 column = i32(0);
        const bf16* const scales_at = scales + column * 4096 + first_column + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          scales_in[c] = load<2, Cache::constant>(scales_at + c * 8);
        }
      }
      for (i64 column_i = 0; column_i < column_end; column_i += 2 * column_step) {
        wait_full(x_state);
        wgmma_block<x_block, reshape_out_block, 1>(product, x_blocks + x_state.stage * x_block::bytes, reshape_out_blocks + x_state.stage * reshape_out_block::bytes, group, false);
        if (column_i + column_step < column_end) {
          {
            const i32 column = i32(column_i + column_step);
            const bf16* const scales_at = scales + column * 4096 + first_column + t * 2;
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              scales_in_next[c] = load<2, Cache::constant>(scales_at + c * 8);
            }
          }
        }
        wgmma_wait<0>();
        release<1>(x_state);
        x_state.next();
        wgmma_pin(product);
        {
          const i32 column = i32(column_i);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              opaque(scales_in[c]);
              const Vec<f32, 2> scales_in_f32 = to_f32(scales_in[c]);
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                running_sum[r][c].v[v] = running_sum[r][c].v[v] + product[r][c].v[v] * scales_in_f32.v[v];
              }
            }
          }
        }
        if (column_i + column_step < column_end) {
          wait_full(x_state);
          wgmma_block<x_block, reshape_out_block, 1>(product, x_blocks + x_state.stage * x_block::bytes, reshape_out_blocks + x_state.stage * reshape_out_block::bytes, group, false);
          if (column_i + column_step + column_step < column_end) {
            {
              const i32 column = i32(column_i + column_step + column_step);
              const bf16* const scales_at = scales + column * 4096 + first_column + t * 2;
#pragma unroll
              for (int c = 0; c < 8; ++c) {
                scales_in[c] = load<2, Cache::constant>(scales_at + c * 8);
              }
            }
          }
          wgmma_wait<0>();
          release<1>(x_state);
          x_state.next();
          wgmma_pin(product);
          {
            const i32 column = i32(column_i + column_step);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
#pragma unroll
              for (int c = 0; c < 8; ++c) {
                opaque(scales_in_next[c]);
                const Vec<f32, 2> scales_in_next_f32 = to_f32(scales_in_next[c]);
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  running_sum[r][c].v[v] = running_sum[r][c].v[v] + product[r][c].v[v] * scales_in_next_f32.v[v];
                }
              }
            }
          }
        }
      }

      bf16* const out_at = out + first_column + g * 4096 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 2; ++wide) {
          Vec<bf16, 2> out_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> out_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              out_out.v[v] = running_sum[r][c].v[v];
            }
            out_parts[part] = from_f32<bf16>(out_out);
          }
          const int c = wide;
          store(out_at + r * 32768 + c * 32, across_quad(out_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
