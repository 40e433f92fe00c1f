// wgmma_b2b threads=128 rounds=overlapped; predicted 32.9 us
// take_take_lt_where_0: lengths i64[16], q bf16[16,8,8,128], table i64[2048], k bf16[2048,8,64,128], v bf16[2048,8,64,128] -> out bf16[16,8,8,128]
// schedule: wgmma_b2b threads=128 rounds=overlapped
// tiles [64,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
// tiles [64,32]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 4 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/used_part.cuh"
#include "tw_cuda/wgmma_dot.cuh"
#include "tw_cuda/wgmma_n128.cuh"
#include "tw_cuda/wgmma_n32.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256, 1) take_take_lt_where_0(const i64* __restrict__ lengths, const bf16* __restrict__ q, const i64* __restrict__ table, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ out, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 64, 128, Major::k>;
  const u32 q_blocks = uniform(block_stage());
  using k_block = Block<bf16, 32, 128, Major::k>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using v_block = Block<bf16, 128, 32, Major::mn>;
  const u32 v_blocks = k_blocks + 2 * k_block::bytes;
  __shared__ TmaPipeline<2> q_pipeline;
  open_pipeline<1, 1>(q_pipeline);
  __shared__ TmaPipeline<2> k_pipeline;
  open_pipeline<1, 1>(k_pipeline);
  __shared__ TmaPipeline<2> v_pipeline;
  open_pipeline<1, 1>(v_pipeline);
  PipelineState<2> q_state(uniform(barriers_of(q_pipeline)));
  PipelineState<2> k_state(uniform(barriers_of(k_pipeline)));
  PipelineState<2> v_state(uniform(barriers_of(v_pipeline)));
  wait_for_previous_kernel();
  if (threadIdx.x >= 128) {
    registers_down<56>();
    if (threadIdx.x == 128) {
      for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
        const i32 program_2 = program;
        const i32 index = program_2 / 8;
        const i32 remainder = program_2 % 8;
        Barrier& q_full = refill(q_pipeline, q_state, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_state.stage * q_block::bytes, q_map, q_full, 0, 0, remainder, index);
        q_state.next();
        const i64 lengths_in = load<1, Cache::constant>(lengths + index).v[0];
        const i64 end = min(max(min(lengths_in, 4398046511104ll), -4398046511104ll), i64(8192));
        const i64 index_2 = min(max(lengths_in, -4398046511104ll), 4398046511104ll) + i64(-32);
        const i64 lengths_in_2 = load<1, Cache::constant>(lengths + index).v[0];
        const i64 index_3 = min(max(lengths_in_2, -4398046511104ll), 4398046511104ll) + i64(-32);
        const i64 distance = min(min(index_2, index_3) + i64(32), end + i64(-1));
        const i32 whole_blocks = i32(max(distance, i64(0))) / 32 * 32;
        const i32 unmasked_end = i32(max(min(i64(whole_blocks), end), i64(0)));
        for (i64 column = unmasked_end; column < end; column += 32) {
          const i32 index_4 = index * 128 + i32(column / i64(64));
          const i64 table_in = load<1, Cache::constant>(table + index_4).v[0];
          const bool and_ = saturate_i32(table_in) >= 0 && saturate_i32(table_in) < 2048;
          const i64 masked_table = and_ ? table_in : i64(2048);
          const i32 remainder_2 = i32(column % i64(64));
          const i32 index_5 = index * 128 + i32(column / i64(64));
          const i64 table_in_2 = load<1, Cache::constant>(table + index_5).v[0];
          const bool and_2 = saturate_i32(table_in_2) >= 0 && saturate_i32(table_in_2) < 2048;
          const i64 masked_table_2 = and_2 ? table_in_2 : i64(2048);
          const i32 remainder_3 = i32(column % i64(64));
          Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_state.stage * k_block::bytes, k_map, k_full, 0, remainder_2, remainder, i32(masked_table));
          k_state.next();
          Barrier& v_full = refill(v_pipeline, v_state, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_state.stage * v_block::bytes, v_map, v_full, 0, remainder_3, remainder, i32(masked_table_2));
          v_state.next();
        }
        const i32 unmasked_end_2 = unmasked_end < saturate_i32(end) ? unmasked_end : 0;
        for (i64 column_2 = 0; column_2 < unmasked_end_2; column_2 += 32) {
          const i32 index_6 = index * 128 + i32(column_2 / i64(64));
          const i64 table_in_3 = load<1, Cache::constant>(table + index_6).v[0];
          const bool and_3 = saturate_i32(table_in_3) >= 0 && saturate_i32(table_in_3) < 2048;
          const i64 masked_table_3 = and_3 ? table_in_3 : i64(2048);
          const i32 remainder_4 = i32(column_2 % i64(64));
          const i32 index_7 = index * 128 + i32(column_2 / i64(64));
          const i64 table_in_4 = load<1, Cache::constant>(table + index_7).v[0];
          const bool and_4 = saturate_i32(table_in_4) >= 0 && saturate_i32(table_in_4) < 2048;
          const i64 masked_table_4 = and_4 ? table_in_4 : i64(2048);
          const i32 remainder_5 = i32(column_2 % i64(64));
          Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_state.stage * k_block::bytes, k_map, k_full, 0, remainder_4, remainder, i32(masked_table_3));
          k_state.next();
          Barrier& v_full = refill(v_pipeline, v_state, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_state.stage * v_block::bytes, v_map, v_full, 0, remainder_5, remainder, i32(masked_table_4));
          v_state.next();
        }
      }
    }
  } else {
    registers_up<256>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
      const i32 program_2 = program;
      const i32 remainder = program_2 % 8;
      const i32 index = program_2 / 8;
      const i64 lengths_in = load<1, Cache::constant>(lengths + index).v[0];
      const i64 lengths_in_2 = load<1, Cache::constant>(lengths + index).v[0];
      const i64 end = min(max(min(lengths_in, 4398046511104ll), -4398046511104ll), i64(8192));
      const i64 index_2 = min(max(lengths_in, -4398046511104ll), 4398046511104ll) + i64(-32);
      const i64 index_3 = min(max(lengths_in_2, -4398046511104ll), 4398046511104ll) + i64(-32);
      const i64 distance = min(min(index_2, index_3) + i64(32), end + i64(-1));
      const i32 whole_blocks = i32(max(distance, i64(0))) / 32 * 32;
      const i32 unmasked_end = i32(max(min(i64(whole_blocks), end), i64(0)));
      const i32 unmasked_end_2 = unmasked_end < saturate_i32(end) ? unmasked_end : 0;

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

      Vec<f32, 2> scores[2][4];
      f32 max_of_scores[2];
      f32 rescale[2];
      f32 clamped_row_max[2];
      f32 new_row_max[2];
      f32 sum_of_exp_scores[2];
      Vec<f32, 2> exp_scores_bf16_wide[2][4];
      f32 new_row_sum[2];
      Vec<f32, 2> scores_2[2][4];
      f32 max_of_scores_2[2];
      f32 rescale_2[2];
      f32 clamped_row_max_2[2];
      f32 new_row_max_2[2];
      f32 sum_of_exp_scores_2[2];
      f32 new_row_sum_2[2];
      wait_full(q_state);
      Vec<bf16, 2> exp_scores_bf16[2][4];
      const i64 column_end = end, column_step = 32;
      if (unmasked_end < column_end) {
        const auto run_round = [&](const i32 column, const bool begins) {
          const i32 index_4 = index * 128 + column / 64;
          const i64 table_in = load<1, Cache::constant>(table + index_4).v[0];
          const bool and_ = saturate_i32(table_in) >= 0 && saturate_i32(table_in) < 2048;
          const i64 masked_table = and_ ? table_in : i64(2048);
          const i32 remainder_2 = column % 64;
          const i32 index_5 = index * 128 + column / 64;
          const i64 table_in_2 = load<1, Cache::constant>(table + index_5).v[0];
          const bool and_2 = saturate_i32(table_in_2) >= 0 && saturate_i32(table_in_2) < 2048;
          const i64 masked_table_2 = and_2 ? table_in_2 : i64(2048);
          const i32 remainder_3 = column % 64;
          wait_full(k_state);
          wgmma_block<q_block, k_block, 1>(scores, q_blocks + q_state.stage * q_block::bytes, k_blocks + k_state.stage * k_block::bytes, group, false);
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
#pragma unroll
            for (int c = 0; c < 4; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_scores = column + ((c * 4 + t) * 2 + v) < saturate_i32(lengths_in) ? scores[r][c].v[v] : -infinity();
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
            rescale[r] = fast::exp(-(clamped_row_max[r] - max(row_max[r], -3.4028235e+38f)));
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            sum_of_exp_scores[r] = Sum::identity<f32>();
            const f32 exp_scores_offset = fast::exp_offset(clamped_row_max[r]);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_scores = column + ((c * 4 + t) * 2 + v) < saturate_i32(lengths_in) ? scores[r][c].v[v] : -infinity();
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
            for (int c = 0; c < 4; ++c) {
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
          wait_full(v_state);
          zero_unused<v_block, true, 128>(v_blocks + v_state.stage * v_block::bytes, [&](i32 i) { return (column + i) < saturate_i32(lengths_in_2); });
          bulk_store_fence();
          warpgroup_sync(group);
        };
        run_round(i32(unmasked_end), true);
        for (i64 column_i = unmasked_end + column_step; column_i < column_end; column_i += column_step) {
          run_round(i32(column_i), false);
        }
        const i64 column_2_end = unmasked_end_2, column_2_step = 32;
        for (i64 column_2_i = 0; column_2_i < column_2_end; column_2_i += column_2_step) {
          const i32 column_2 = i32(column_2_i);
          const i32 index_6 = index * 128 + column_2 / 64;
          const i64 table_in_3 = load<1, Cache::constant>(table + index_6).v[0];
          const bool and_3 = saturate_i32(table_in_3) >= 0 && saturate_i32(table_in_3) < 2048;
          const i64 masked_table_3 = and_3 ? table_in_3 : i64(2048);
          const i32 remainder_4 = column_2 % 64;
          const i32 index_7 = index * 128 + column_2 / 64;
          const i64 table_in_4 = load<1, Cache::constant>(table + index_7).v[0];
          const bool and_4 = saturate_i32(table_in_4) >= 0 && saturate_i32(table_in_4) < 2048;
          const i64 masked_table_4 = and_4 ? table_in_4 : i64(2048);
          const i32 remainder_5 = column_2 % 64;
          wait_full(k_state);
          wgmma_block<q_block, k_block, 1>(scores_2, q_blocks + q_state.stage * q_block::bytes, k_blocks + k_state.stage * k_block::bytes, group, false);
          wait_full(v_state);
          wgmma_block<v_block>(acc, exp_scores_bf16, v_blocks + v_state.stage * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(scores_2);
          release<1>(k_state);
          k_state.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_scores_2[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 4; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                max_of_scores_2[r] = max(max_of_scores_2[r], scores_2[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_scores_2);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_scores_2[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            new_row_max_2[r] = max(row_max[r], max_of_scores_2[r]);
            clamped_row_max_2[r] = max(new_row_max_2[r] == -infinity() ? 0.0f : new_row_max_2[r], -3.4028235e+38f);
            rescale_2[r] = fast::exp(-(clamped_row_max_2[r] - max(row_max[r], -3.4028235e+38f)));
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            sum_of_exp_scores_2[r] = Sum::identity<f32>();
            const f32 exp_scores_offset = fast::exp_offset(clamped_row_max_2[r]);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 exp_scores = fast::exp2(fmaf(scores_2[r][c].v[v], 0.12751743f, exp_scores_offset));
                sum_of_exp_scores_2[r] += exp_scores;
                exp_scores_bf16_wide[r][c].v[v] = exp_scores;
              }
            }
          }
          reduce_lanes<Sum, 4>(sum_of_exp_scores_2);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            new_row_sum_2[r] = row_sum[r] * rescale_2[r] + sum_of_exp_scores_2[r];
          }
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_scores_bf16);
          release<1>(v_state);
          v_state.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                acc[r][c].v[v] = acc[r][c].v[v] * rescale_2[r];
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              exp_scores_bf16[r][c] = from_f32<bf16>(exp_scores_bf16_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_max[r] = new_row_max_2[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_sum[r] = new_row_sum_2[r];
          }
        }
        wait_full(v_state);
        wgmma_block<v_block>(acc, exp_scores_bf16, v_blocks + v_state.stage * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_scores_bf16);
        release<1>(v_state);
        v_state.next();
      }
      OwnGroup::wait();
      release<1>(q_state);
      q_state.next();

      const int out_rows = end_inside(i64(0), 8, 64);
      bf16* const out_at = out + index * 8192 + remainder * 1024 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == -infinity();
        const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
        const f32 reciprocal_row_sum = fast::reciprocal(finite_row_sum);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> out_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> out_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              out_out.v[v] = acc[r][c].v[v] * reciprocal_row_sum;
            }
            out_parts[part] = from_f32<bf16>(out_out);
          }
          const int c = wide;
          store_if(r * 8 + g < out_rows, out_at + r * 1024 + c * 32, across_quad(out_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
