// wgmma_scaled threads=256 stages=4 group_m=8 cluster=2; predicted 216 us
// mul_matmul_mul_sum_1: scale_a f32[32,4096], scale_b f32[32,32], a f8e4m3[32,4096,128], transpose_out f8e4m3[32,32,128,128] -> out bf16[4096,32,128]
// schedule: wgmma_scaled threads=256 stages=4 group_m=8 cluster=2
// tiles [256,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 4 rows, 16 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n128.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) mul_matmul_mul_sum_1(const f32* __restrict__ scale_a, const f32* __restrict__ scale_b, const f8e4m3* __restrict__ a, const f8e4m3* __restrict__ transpose_out, bf16* __restrict__ out, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap transpose_out_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using a_block = Block<f8e4m3, 256, 128, Major::k>;
  const u32 a_blocks_ = uniform(block_stage());
  using transpose_out_block = Block<f8e4m3, 128, 128, Major::k>;
  const u32 transpose_out_blocks = a_blocks_ + 4 * a_block::bytes;
  const u32 rank = cluster_rank();
  __shared__ TmaPipeline<4> a_pipeline;
  open_pipeline<2, 2>(a_pipeline);
  PipelineState<4> a_state(uniform(barriers_of(a_pipeline)));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 program = i32(blockIdx.x); program < 512; program += i32(gridDim.x)) {
        const GridPoint point = tile_swizzle<8>(program, 32, 16);
        const i32 program_0 = point.x;
        const i32 program_1 = point.y;
        const i32 first_row = program_1 * 256;
        for (i64 column = 0; column < 32; column += 1) {
          Barrier& a_full = refill(a_pipeline, a_state, a_block::bytes + transpose_out_block::bytes);
          tma_load_panels<1, a_block::panel_bytes, 128>(a_blocks_ + a_state.stage * a_block::bytes, a_map, a_full, 0, first_row, i32(column));
          tma_multicast_panels<1, transpose_out_block::panel_bytes, 128>(3, transpose_out_blocks + a_state.stage * transpose_out_block::bytes + rank * 8192, transpose_out_map, a_full, 0, 0 + i32(rank) * 64, program_0, i32(column));
          a_state.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 512; program += i32(gridDim.x)) {
      const GridPoint point = tile_swizzle<8>(program, 32, 16);
      const i32 program_0 = point.x;
      const i32 program_1 = point.y;
      const i32 first_row = program_1 * 256;

      Vec<f32, 2> running_sum[4][16];
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            running_sum[r][c].v[v] = 0.0f;
          }
        }
      }

      f32 scale_a_in[4];
      Vec<f32, 2> product[2][16];
      keep_step<256>();
      f32 scale_a_in_next[4];
      f32 scale_b_in, scale_b_in_next;
      const i64 column_end = 32, column_step = 1;
      {
        const i32 column = i32(0);
        scale_b_in = load<1, Cache::constant>(scale_b + column * 32 + program_0).v[0];
        const f32* const scale_a_at = scale_a + column + first_row * 32 + g * 32;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          scale_a_in[r] = load<1, Cache::constant>(scale_a_at + r / 2 * 4096 + r % 2 * 256).v[0];
        }
      }
      for (i64 column_i = 0; column_i < column_end; column_i += 2 * column_step) {
        wait_full(a_state);
        wgmma_block<a_block, transpose_out_block, 2>(product, a_blocks_ + a_state.stage * a_block::bytes, transpose_out_blocks + a_state.stage * transpose_out_block::bytes, group, false);
        if (column_i + column_step < column_end) {
          {
            const i32 column = i32(column_i + column_step);
            scale_b_in_next = load<1, Cache::constant>(scale_b + column * 32 + program_0).v[0];
            const f32* const scale_a_at = scale_a + column + first_row * 32 + g * 32;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
              scale_a_in_next[r] = load<1, Cache::constant>(scale_a_at + r / 2 * 4096 + r % 2 * 256).v[0];
            }
          }
        }
        wgmma_wait<0>();
        wgmma_pin(product);
        wgmma_pin(scale_a_in);
        wgmma_pin(scale_b_in);
        {
          const i32 column = i32(column_i);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 product_2 = scale_a_in[r] * scale_b_in;
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                running_sum[r][c].v[v] = running_sum[r][c].v[v] + product_2 * product[r % 2][c].v[v];
              }
            }
          }
        }
        wgmma_block<a_block, transpose_out_block, 2>(product, a_blocks_ + a_state.stage * a_block::bytes + a_block::offset(128, 0), transpose_out_blocks + a_state.stage * transpose_out_block::bytes, group, false);
        wgmma_wait<0>();
        release<2>(a_state);
        a_state.next();
        wgmma_pin(product);
        wgmma_pin(scale_a_in);
        wgmma_pin(scale_b_in);
        {
          const i32 column = i32(column_i);
#pragma unroll
          for (int r = 2; r < 4; ++r) {
            const f32 product_2 = scale_a_in[r] * scale_b_in;
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                running_sum[r][c].v[v] = running_sum[r][c].v[v] + product_2 * product[r % 2][c].v[v];
              }
            }
          }
        }
        if (column_i + column_step < column_end) {
          wait_full(a_state);
          wgmma_block<a_block, transpose_out_block, 2>(product, a_blocks_ + a_state.stage * a_block::bytes, transpose_out_blocks + a_state.stage * transpose_out_block::bytes, group, false);
          if (column_i + column_step + column_step < column_end) {
            {
              const i32 column = i32(column_i + column_step + column_step);
              scale_b_in = load<1, Cache::constant>(scale_b + column * 32 + program_0).v[0];
              const f32* const scale_a_at = scale_a + column + first_row * 32 + g * 32;
#pragma unroll
              for (int r = 0; r < 4; ++r) {
                scale_a_in[r] = load<1, Cache::constant>(scale_a_at + r / 2 * 4096 + r % 2 * 256).v[0];
              }
            }
          }
          wgmma_wait<0>();
          wgmma_pin(product);
          wgmma_pin(scale_a_in_next);
          wgmma_pin(scale_b_in_next);
          {
            const i32 column = i32(column_i + column_step);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
              const f32 product_2 = scale_a_in_next[r] * scale_b_in_next;
#pragma unroll
              for (int c = 0; c < 16; ++c) {
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  running_sum[r][c].v[v] = running_sum[r][c].v[v] + product_2 * product[r % 2][c].v[v];
                }
              }
            }
          }
          wgmma_block<a_block, transpose_out_block, 2>(product, a_blocks_ + a_state.stage * a_block::bytes + a_block::offset(128, 0), transpose_out_blocks + a_state.stage * transpose_out_block::bytes, group, false);
          wgmma_wait<0>();
          release<2>(a_state);
          a_state.next();
          wgmma_pin(product);
          wgmma_pin(scale_a_in_next);
          wgmma_pin(scale_b_in_next);
          {
            const i32 column = i32(column_i + column_step);
#pragma unroll
            for (int r = 2; r < 4; ++r) {
              const f32 product_2 = scale_a_in_next[r] * scale_b_in_next;
#pragma unroll
              for (int c = 0; c < 16; ++c) {
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                  running_sum[r][c].v[v] = running_sum[r][c].v[v] + product_2 * product[r % 2][c].v[v];
                }
              }
            }
          }
        }
      }

      bf16* const out_at = out + first_row * 4096 + program_0 * 128 + g * 4096 + t * 8;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
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
          store(out_at + r / 2 * 524288 + r % 2 * 32768 + c * 32, across_quad(out_parts));
        }
      }
    }
  }
  close_pipeline<2>();
}

}  // namespace tw
