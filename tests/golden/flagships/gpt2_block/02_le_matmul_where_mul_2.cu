// wgmma_b2b threads=256 longest_first=true rounds=fa3_pingpong; predicted 13.8 us
// le_matmul_where_mul_2: add_out bf16[2,12,1024,64], add_out_1 bf16[2,12,1024,64], add_out_2 bf16[2,12,1024,64] -> transpose_out bf16[2,12,1024,64]
// schedule: wgmma_b2b threads=256 longest_first=true rounds=fa3_pingpong
// tiles [128,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n128.cuh"
#include "tw_cuda/wgmma_n64.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_2(const bf16* __restrict__ add_out, const bf16* __restrict__ add_out_1, const bf16* __restrict__ add_out_2, bf16* __restrict__ transpose_out, const __grid_constant__ TensorMap add_out_map, const __grid_constant__ TensorMap add_out_1_map, const __grid_constant__ TensorMap add_out_2_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using add_out_block = Block<bf16, 128, 64, Major::k>;
  const u32 add_out_blocks = uniform(block_stage());
  using add_out_1_block = Block<bf16, 128, 64, Major::k>;
  const u32 add_out_1_blocks = add_out_blocks + 2 * add_out_block::bytes;
  using add_out_2_block = Block<bf16, 64, 128, Major::mn>;
  const u32 add_out_2_blocks = add_out_1_blocks + 2 * add_out_1_block::bytes;
  __shared__ TmaPipeline<2> add_out_pipeline;
  open_pipeline<2, 1>(add_out_pipeline);
  __shared__ TmaPipeline<2> add_out_1_pipeline;
  open_pipeline<2, 1>(add_out_1_pipeline);
  __shared__ TmaPipeline<2> add_out_2_pipeline;
  open_pipeline<2, 1>(add_out_2_pipeline);
  PipelineState<2> add_out_state(uniform(barriers_of(add_out_pipeline)));
  PipelineState<2> add_out_1_state(uniform(barriers_of(add_out_1_pipeline)));
  PipelineState<2> add_out_2_state(uniform(barriers_of(add_out_2_pipeline)));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 192; ++wave) {
        const i32 program_2 = program % 24;
        const i32 index = program_2 / 12;
        const i32 remainder = program_2 % 12;
        const i32 program_1 = 7 - program / 24;
        const i32 first_row = program_1 * 128;
        Barrier& add_out_full = refill(add_out_pipeline, add_out_state, add_out_block::bytes);
        tma_load_panels<1, add_out_block::panel_bytes, 64>(add_out_blocks + add_out_state.stage * add_out_block::bytes, add_out_map, add_out_full, 0, first_row, remainder, index);
        add_out_state.next();
        const i32 end = first_row + 128;
        for (i64 column = first_row; column < end; column += 128) {
          Barrier& add_out_1_full = refill(add_out_1_pipeline, add_out_1_state, add_out_1_block::bytes);
          tma_load_panels<1, add_out_1_block::panel_bytes, 64>(add_out_1_blocks + add_out_1_state.stage * add_out_1_block::bytes, add_out_1_map, add_out_1_full, 0, i32(column), remainder, index);
          add_out_1_state.next();
          Barrier& add_out_2_full = refill(add_out_2_pipeline, add_out_2_state, add_out_2_block::bytes);
          tma_load_panels<1, add_out_2_block::panel_bytes, 64>(add_out_2_blocks + add_out_2_state.stage * add_out_2_block::bytes, add_out_2_map, add_out_2_full, 0, i32(column), remainder, index);
          add_out_2_state.next();
        }
        for (i64 column_2 = 0; column_2 < first_row; column_2 += 128) {
          Barrier& add_out_1_full = refill(add_out_1_pipeline, add_out_1_state, add_out_1_block::bytes);
          tma_load_panels<1, add_out_1_block::panel_bytes, 64>(add_out_1_blocks + add_out_1_state.stage * add_out_1_block::bytes, add_out_1_map, add_out_1_full, 0, i32(column_2), remainder, index);
          add_out_1_state.next();
          Barrier& add_out_2_full = refill(add_out_2_pipeline, add_out_2_state, add_out_2_block::bytes);
          tma_load_panels<1, add_out_2_block::panel_bytes, 64>(add_out_2_blocks + add_out_2_state.stage * add_out_2_block::bytes, add_out_2_map, add_out_2_full, 0, i32(column_2), remainder, index);
          add_out_2_state.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    if (group == 1) pingpong_signal<2>(group);
    for (i32 wave = 0, program; (program = serpentine(wave)) < 192; ++wave) {
      const i32 program_1 = 7 - program / 24;
      const i32 program_2 = program % 24;
      const i32 first_row = program_1 * 128;
      const i32 remainder = program_2 % 12;
      const i32 index = program_2 / 12;
      const i32 end = first_row + 128;

      f32 row_max[2];
      f32 row_sum[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        row_max[r] = -infinity();
        row_sum[r] = 0.0f;
      }

      Vec<f32, 2> acc[2][8];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            acc[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> scores[2][16];
      f32 max_of_scores[2];
      Vec<f32, 2> masked_scores[2][16];
      f32 rescale[2];
      f32 clamped_row_max[2];
      f32 new_row_max[2];
      f32 sum_of_exp_scores[2];
      Vec<f32, 2> exp_scores_bf16_wide[2][16];
      f32 new_row_sum[2];
      wait_full(add_out_state);
      Vec<bf16, 2> exp_scores_bf16[2][16];
      const auto run_round = [&](const i32 column, const bool begins, const bool masked) {
        wait_full(add_out_1_state);
        if (!begins) {
          pingpong_wait(group);
        }
        wgmma_block<add_out_block, add_out_1_block, 2>(scores, add_out_blocks + add_out_state.stage * add_out_block::bytes, add_out_1_blocks + add_out_1_state.stage * add_out_1_block::bytes, group, false);
        if (!begins) {
          wait_full(add_out_2_state);
          wgmma_block<add_out_2_block>(acc, exp_scores_bf16, add_out_2_blocks + add_out_2_state.stage * add_out_2_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
        }
        if (begins) wgmma_wait<0>();
        wgmma_pin(scores);
        release<1>(add_out_1_state);
        add_out_1_state.next();
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          max_of_scores[r] = Max::identity<f32>();
          const i32 row_index = first_row + (r * 8 + g);
#pragma unroll
          for (int c = 0; c < 16; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_scores_2 = !masked || column + ((c * 4 + t) * 2 + v) <= row_index ? scores[r][c].v[v] : -infinity();
              max_of_scores[r] = max(max_of_scores[r], masked_scores_2);
              masked_scores[r][c].v[v] = masked_scores_2;
            }
          }
        }
        reduce_lanes<Max, 4>(max_of_scores);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          max_of_scores[r] *= 0.125f;
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          new_row_max[r] = max(row_max[r], max_of_scores[r]);
          clamped_row_max[r] = max(new_row_max[r] == -infinity() ? 0.0f : new_row_max[r], -3.4028235e+38f);
          rescale[r] = fast::exp(-(clamped_row_max[r] - max(row_max[r], -3.4028235e+38f)));
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          sum_of_exp_scores[r] = Sum::identity<f32>();
          const f32 exp_scores_offset = fast::exp_offset(clamped_row_max[r]);
#pragma unroll
          for (int c = 0; c < 16; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 exp_scores = fast::exp2(fmaf(masked_scores[r][c].v[v], 0.18033688f, exp_scores_offset));
              sum_of_exp_scores[r] += exp_scores;
              exp_scores_bf16_wide[r][c].v[v] = exp_scores;
            }
          }
        }
        reduce_lanes<Sum, 4>(sum_of_exp_scores);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          new_row_sum[r] = row_sum[r] * rescale[r] + sum_of_exp_scores[r];
        }
        if (!begins) {
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_scores_bf16);
          release<1>(add_out_2_state);
          add_out_2_state.next();
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int c = 0; c < 8; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              acc[r][c].v[v] = acc[r][c].v[v] * rescale[r];
            }
          }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int c = 0; c < 16; ++c) {
            exp_scores_bf16[r][c] = from_f32<bf16>(exp_scores_bf16_wide[r][c]);
          }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          row_max[r] = new_row_max[r];
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          row_sum[r] = new_row_sum[r];
        }
      };
      run_round(i32(first_row), true, true);
      const i64 column_2_end = first_row, column_2_step = 128;
      for (i64 column_2_i = 0; column_2_i < column_2_end; column_2_i += column_2_step) {
        run_round(i32(column_2_i), false, false);
      }
      wait_full(add_out_2_state);
      wgmma_block<add_out_2_block>(acc, exp_scores_bf16, add_out_2_blocks + add_out_2_state.stage * add_out_2_block::bytes, true);
      wgmma_wait<0>();
      wgmma_pin(acc);
      wgmma_pin(exp_scores_bf16);
      release<1>(add_out_2_state);
      add_out_2_state.next();
      OwnGroup::wait();
      release<1>(add_out_state);
      add_out_state.next();

      bf16* const transpose_out_at = transpose_out + index * 786432 + remainder * 64 + first_row * 768 + g * 768 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == -infinity();
        const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
        const f32 reciprocal_row_sum = fast::reciprocal(finite_row_sum);
#pragma unroll
        for (int wide = 0; wide < 2; ++wide) {
          Vec<bf16, 2> transpose_out_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> transpose_out_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              transpose_out_out.v[v] = acc[r][c].v[v] * reciprocal_row_sum;
            }
            transpose_out_parts[part] = from_f32<bf16>(transpose_out_out);
          }
          const int c = wide;
          store(transpose_out_at + r * 6144 + c * 32, across_quad(transpose_out_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
