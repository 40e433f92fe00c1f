// wgmma_b2b threads=256 longest_first=true rounds=overlapped; predicted 127 us
// le_matmul_where_mul_0: q bf16[16,4096,128], k bf16[16,4096,128], v bf16[16,4096,128] -> maximum_out f32[16,4096], matmul_out f32[16,4096,128], eq_out bool[16,4096], where_out f32[16,4096]
// schedule: wgmma_b2b threads=256 longest_first=true rounds=overlapped
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n128.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_0(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v_, f32* __restrict__ maximum_out, f32* __restrict__ matmul_out, bool* __restrict__ eq_out, f32* __restrict__ where_out, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 128, 128, Major::k>;
  const u32 q_blocks = uniform(block_stage());
  using k_block = Block<bf16, 128, 128, Major::k>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using v_block = Block<bf16, 128, 128, Major::mn>;
  const u32 v_blocks = k_blocks + 2 * k_block::bytes;
  __shared__ TmaPipeline<2> q_pipeline;
  open_pipeline<2, 1>(q_pipeline);
  __shared__ TmaPipeline<2> k_pipeline;
  open_pipeline<2, 1>(k_pipeline);
  __shared__ TmaPipeline<2> v_pipeline;
  open_pipeline<2, 1>(v_pipeline);
  PipelineState<2> q_state(uniform(barriers_of(q_pipeline)));
  PipelineState<2> k_state(uniform(barriers_of(k_pipeline)));
  PipelineState<2> v_state(uniform(barriers_of(v_pipeline)));
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
        const i32 program_2 = program % 16;
        const i32 program_1 = 31 - program / 16;
        const i32 first_row = program_1 * 128;
        Barrier& q_full = refill(q_pipeline, q_state, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_state.stage * q_block::bytes, q_map, q_full, 0, first_row, program_2);
        q_state.next();
        const i32 end = first_row + 128;
        for (i64 column = first_row; column < end; column += 128) {
          Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_state.stage * k_block::bytes, k_map, k_full, 0, i32(column), program_2);
          k_state.next();
          Barrier& v_full = refill(v_pipeline, v_state, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_state.stage * v_block::bytes, v_map, v_full, 0, i32(column), program_2);
          v_state.next();
        }
        for (i64 column_2 = 0; column_2 < first_row; column_2 += 128) {
          Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_state.stage * k_block::bytes, k_map, k_full, 0, i32(column_2), program_2);
          k_state.next();
          Barrier& v_full = refill(v_pipeline, v_state, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_state.stage * v_block::bytes, v_map, v_full, 0, i32(column_2), program_2);
          v_state.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
      const i32 program_1 = 31 - program / 16;
      const i32 program_2 = program % 16;
      const i32 first_row = program_1 * 128;
      const i32 end = first_row + 128;

      f32 row_max[2];
      f32 row_sum[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        row_max[r] = -infinity();
        row_sum[r] = 0.0f;
      }

      Vec<f32, 2> acc[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            acc[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> scores[2][16];
      f32 max_of_scores[2];
      f32 rescale[2];
      f32 clamped_row_max[2];
      f32 new_row_max[2];
      f32 sum_of_exp_scores[2];
      Vec<f32, 2> exp_scores_bf16_wide[2][16];
      f32 new_row_sum[2];
      wait_full(q_state);
      Vec<bf16, 2> exp_scores_bf16[2][16];
      const auto run_round = [&](const i32 column, const bool begins, const bool masked) {
        wait_full(k_state);
        wgmma_block<q_block, k_block, 2>(scores, q_blocks + q_state.stage * q_block::bytes, k_blocks + k_state.stage * k_block::bytes, group, false);
        if (!begins) {
          wait_full(v_state);
          wgmma_block<v_block>(acc, exp_scores_bf16, v_blocks + v_state.stage * v_block::bytes, true);
          wgmma_wait<1>();
        }
        if (begins) wgmma_wait<0>();
        wgmma_pin(scores);
        release<1>(k_state);
        k_state.next();
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          max_of_scores[r] = Max::identity<f32>();
          const i32 row_index = first_row + (r * 8 + g);
#pragma unroll
          for (int c = 0; c < 16; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_scores = !masked || column + ((c * 4 + t) * 2 + v) <= row_index ? scores[r][c].v[v] : -infinity();
              max_of_scores[r] = max(max_of_scores[r], masked_scores);
            }
          }
        }
        reduce_lanes<Max, 4>(max_of_scores);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          max_of_scores[r] *= 0.088388346f;
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          new_row_max[r] = max(row_max[r], max_of_scores[r]);
          clamped_row_max[r] = max(new_row_max[r] == -infinity() ? 0.0f : new_row_max[r], -3.4028235e+38f);
          rescale[r] = exp(-(clamped_row_max[r] - max(row_max[r], -3.4028235e+38f)));
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          sum_of_exp_scores[r] = Sum::identity<f32>();
          const i32 row_index = first_row + (r * 8 + g);
          const f32 exp_scores_offset = fast::exp_offset(clamped_row_max[r]);
#pragma unroll
          for (int c = 0; c < 16; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_scores = !masked || column + ((c * 4 + t) * 2 + v) <= row_index ? scores[r][c].v[v] : -infinity();
              const f32 exp_scores = fast::exp2(fmaf(masked_scores, 0.12751743f, exp_scores_offset));
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
          release<1>(v_state);
          v_state.next();
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int c = 0; c < 16; ++c) {
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
      wait_full(v_state);
      wgmma_block<v_block>(acc, exp_scores_bf16, v_blocks + v_state.stage * v_block::bytes, true);
      wgmma_wait<0>();
      wgmma_pin(acc);
      wgmma_pin(exp_scores_bf16);
      release<1>(v_state);
      v_state.next();
      OwnGroup::wait();
      release<1>(q_state);
      q_state.next();

      f32* const maximum_out_at = maximum_out + program_2 * 4096 + first_row + g;
      bool* const eq_out_at = eq_out + program_2 * 4096 + first_row + g;
      f32* const where_out_at = where_out + program_2 * 4096 + first_row + g;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == -infinity();
        if (t == 0) store(maximum_out_at + r * 8, Vec<f32, 1>{{f32(max(row_max[r], -3.4028235e+38f))}});
        if (t == 0) store(eq_out_at + r * 8, Vec<bool, 1>{{bool(is_empty)}});
        if (t == 0) store(where_out_at + r * 8, Vec<f32, 1>{{f32(is_empty ? 1.0f : row_sum[r])}});
      }

      f32* const matmul_out_at = matmul_out + program_2 * 524288 + first_row * 128 + g * 128 + t * 2;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
          store(matmul_out_at + r * 1024 + c * 8, acc[r][c]);
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
