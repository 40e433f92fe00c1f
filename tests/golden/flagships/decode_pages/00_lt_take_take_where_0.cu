// wgmma_b2b threads=128 rounds=ahead; predicted 64.8 us
// lt_take_take_where_0: lengths i64[16], q bf16[16,8,8,128], table i64[2048], k bf16[2048,8,64,128], v bf16[2048,8,64,128] -> t52 bf16[16,8,8,128]
// schedule: wgmma_b2b threads=128 rounds=ahead
// tiles [64,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
// tiles [64,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
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

namespace tw {

extern "C" __global__ void __launch_bounds__(256, 1) lt_take_take_where_0(const i64* __restrict__ lengths, const bf16* __restrict__ q, const i64* __restrict__ table, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ t52, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 64, 128, Major::k>;
  const u32 q_blocks = block_stage();
  using k_block = Block<bf16, 64, 128, Major::k>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using v_block = Block<bf16, 128, 64, Major::mn>;
  const u32 v_blocks = k_blocks + 2 * k_block::bytes;
  __shared__ TmaPipeline<2> q_ring;
  open_pipeline<1, 1>(q_ring);
  __shared__ TmaPipeline<2> k_ring;
  open_pipeline<1, 1>(k_ring);
  __shared__ TmaPipeline<2> v_ring;
  open_pipeline<1, 1>(v_ring);
  PipelineState<2> q_turn;
  PipelineState<2> k_turn;
  PipelineState<2> v_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 128) {
    registers_down<56>();
    if (threadIdx.x == 128) {
      for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
        const i32 program_2 = program;
        const i32 index = program_2 / 8;
        const i32 remainder = program_2 % 8;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, 0, remainder, index);
        q_turn.next();
        const i64 lengths_in = load<1, Cache::constant>(lengths + index).v[0];
        const i64 end = min(lengths_in, 4398046511104ll);
        const i64 begin = max(end, -4398046511104ll);
        const i64 end_2 = min(begin, i64(8192));
        const i64 begin_2 = max(lengths_in, -4398046511104ll);
        const i64 end_3 = min(begin_2, 4398046511104ll);
        const i64 index_2 = end_3 + i64(-64);
        const i64 lengths_in_2 = load<1, Cache::constant>(lengths + index).v[0];
        const i64 begin_3 = max(lengths_in_2, -4398046511104ll);
        const i64 end_4 = min(begin_3, 4398046511104ll);
        const i64 index_3 = end_4 + i64(-64);
        const i64 end_5 = min(index_2, index_3);
        const i64 index_8 = end_5 + i64(64);
        const i64 index_7 = end_2 + i64(-1);
        const i64 end_6 = min(index_8, index_7);
        const i32 begin_5 = i32(max(end_6, i64(0)));
        const i32 index_9 = begin_5 / 64;
        const i32 index_10 = index_9 * 64;
        const i64 end_7 = min(i64(index_10), end_2);
        const i32 begin_6 = i32(max(end_7, i64(0)));
        for (i64 k_2 = begin_6; k_2 < end_2; k_2 += 64) {
          const i32 index_11 = index * 128;
          const i32 index_12 = i32(k_2 / i64(64));
          const i32 index_13 = index_11 + index_12;
          const i64 table_in = load<1, Cache::constant>(table + index_13).v[0];
          const bool is_below_2 = saturate_i32(table_in) < 2048;
          const bool is_above = saturate_i32(table_in) >= 0;
          const bool and_ = is_above && is_below_2;
          const i64 masked_table = and_ ? table_in : i64(2048);
          const i32 remainder_2 = i32(k_2 % i64(64));
          const i32 index_14 = index * 128;
          const i32 index_15 = i32(k_2 / i64(64));
          const i32 index_16 = index_14 + index_15;
          const i64 table_in_2 = load<1, Cache::constant>(table + index_16).v[0];
          const bool is_below_3 = saturate_i32(table_in_2) < 2048;
          const bool is_above_2 = saturate_i32(table_in_2) >= 0;
          const bool and_2 = is_above_2 && is_below_3;
          const i64 masked_table_2 = and_2 ? table_in_2 : i64(2048);
          const i32 remainder_3 = i32(k_2 % i64(64));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, remainder_2, remainder, i32(masked_table));
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, remainder_3, remainder, i32(masked_table_2));
          v_turn.next();
        }
        const bool is_below = begin_6 < saturate_i32(end_2);
        const i32 masked_lengths = is_below ? begin_6 : 0;
        for (i64 k_3 = 0; k_3 < masked_lengths; k_3 += 64) {
          const i32 index_17 = index * 128;
          const i32 index_18 = i32(k_3 / i64(64));
          const i32 index_19 = index_17 + index_18;
          const i64 table_in_3 = load<1, Cache::constant>(table + index_19).v[0];
          const bool is_below_4 = saturate_i32(table_in_3) < 2048;
          const bool is_above_3 = saturate_i32(table_in_3) >= 0;
          const bool and_3 = is_above_3 && is_below_4;
          const i64 masked_table_3 = and_3 ? table_in_3 : i64(2048);
          const i32 remainder_4 = i32(k_3 % i64(64));
          const i32 index_20 = index * 128;
          const i32 index_21 = i32(k_3 / i64(64));
          const i32 index_22 = index_20 + index_21;
          const i64 table_in_4 = load<1, Cache::constant>(table + index_22).v[0];
          const bool is_below_5 = saturate_i32(table_in_4) < 2048;
          const bool is_above_4 = saturate_i32(table_in_4) >= 0;
          const bool and_4 = is_above_4 && is_below_5;
          const i64 masked_table_4 = and_4 ? table_in_4 : i64(2048);
          const i32 remainder_5 = i32(k_3 % i64(64));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, remainder_4, remainder, i32(masked_table_3));
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, remainder_5, remainder, i32(masked_table_4));
          v_turn.next();
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
      const i64 end = min(lengths_in, 4398046511104ll);
      const i64 begin = max(end, -4398046511104ll);
      const i64 end_2 = min(begin, i64(8192));
      const i64 begin_2 = max(lengths_in, -4398046511104ll);
      const i64 end_3 = min(begin_2, 4398046511104ll);
      const i64 index_2 = end_3 + i64(-64);
      const i64 begin_3 = max(lengths_in_2, -4398046511104ll);
      const i64 end_4 = min(begin_3, 4398046511104ll);
      const i64 index_3 = end_4 + i64(-64);
      const i64 end_5 = min(index_2, index_3);
      const i64 index_4 = end_5 + i64(64);
      const i64 begin_4 = max(index_4, i64(0));
      const i64 index_5 = begin_4 / i64(64);
      const i64 index_6 = index_5 * i64(64);
      const i64 index_7 = end_2 + i64(-1);
      const i64 index_8 = end_5 + i64(64);
      const i64 end_6 = min(index_8, index_7);
      const i32 begin_5 = i32(max(end_6, i64(0)));
      const i32 index_9 = begin_5 / 64;
      const i32 index_10 = index_9 * 64;
      const i64 end_7 = min(i64(index_10), end_2);
      const i32 begin_6 = i32(max(end_7, i64(0)));
      const bool is_below = begin_6 < saturate_i32(end_2);
      const i32 masked_lengths = is_below ? begin_6 : 0;

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

      Vec<f32, 2> product[2][8];
      f32 max_of_product[2];
      f32 sum_of_exp_product[2];
      Vec<f32, 2> exp_product_bf16_wide[2][8];
      f32 new_row_sum[2];
      Vec<f32, 2> product_2[2][8];
      f32 max_of_product_2[2];
      f32 sum_of_exp_product_2[2];
      f32 new_row_sum_2[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> exp_product_bf16[2][8];
      const i64 k_2_end = end_2, k_2_step = 64;
      if (begin_6 < k_2_end) {
        {
          const i32 k_2 = i32(begin_6);
          const i32 index_11 = index * 128;
          const i32 index_12 = k_2 / 64;
          const i32 index_13 = index_11 + index_12;
          const i64 table_in = load<1, Cache::constant>(table + index_13).v[0];
          const bool is_below_2 = saturate_i32(table_in) < 2048;
          const bool is_above = saturate_i32(table_in) >= 0;
          const bool and_ = is_above && is_below_2;
          const i64 masked_table = and_ ? table_in : i64(2048);
          const i32 remainder_2 = k_2 % 64;
          const i32 index_14 = index * 128;
          const i32 index_15 = k_2 / 64;
          const i32 index_16 = index_14 + index_15;
          const i64 table_in_2 = load<1, Cache::constant>(table + index_16).v[0];
          const bool is_below_3 = saturate_i32(table_in_2) < 2048;
          const bool is_above_2 = saturate_i32(table_in_2) >= 0;
          const bool and_2 = is_above_2 && is_below_3;
          const i64 masked_table_2 = and_2 ? table_in_2 : i64(2048);
          const i32 remainder_3 = k_2 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(product);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) < saturate_i32(lengths_in)) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product);
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            sum_of_exp_product[r] = Sum::identity<f32>();
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 exp_product_offset = fast::exp_offset(clamped_row_max);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) < saturate_i32(lengths_in)) ? product[r][c].v[v] : (-infinity());
                const f32 exp_product = fast::exp2(fmaf(masked_product, 0.12751743f, exp_product_offset));
                sum_of_exp_product[r] += exp_product;
                exp_product_bf16_wide[r][c].v[v] = exp_product;
              }
            }
          }
          reduce_lanes<Sum, 4>(sum_of_exp_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const f32 difference = max((new_row_max == (-infinity())) ? 0.0f : new_row_max, -3.4028235e+38f) - max(row_max[r], -3.4028235e+38f);
            new_row_sum[r] = (row_sum[r] * fast::exp(-difference)) + sum_of_exp_product[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 clamped_row_max_2 = max(row_max[r], -3.4028235e+38f);
            const f32 difference = clamped_row_max - clamped_row_max_2;
            const f32 exp_row_max = fast::exp(-difference);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                acc[r][c].v[v] = acc[r][c].v[v] * exp_row_max;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_max[r] = max(row_max[r], max_of_product[r]);
          }
          f32 new_row_sum_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            new_row_sum_old[r] = new_row_sum[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_sum[r] = new_row_sum_old[r];
          }
          wait_full(v_ring, v_turn);
          zero_unused<v_block, true, 128>(v_blocks + v_turn.place * v_block::bytes, [&](i32 i) { return (k_2 + i) < saturate_i32(lengths_in_2); });
          bulk_store_fence();
          warpgroup_sync(group);
        }
        for (i64 k_2_i = begin_6 + k_2_step; k_2_i < k_2_end; k_2_i += k_2_step) {
          const i32 k_2 = i32(k_2_i);
          const i32 index_11 = index * 128;
          const i32 index_12 = k_2 / 64;
          const i32 index_13 = index_11 + index_12;
          const i64 table_in = load<1, Cache::constant>(table + index_13).v[0];
          const bool is_below_2 = saturate_i32(table_in) < 2048;
          const bool is_above = saturate_i32(table_in) >= 0;
          const bool and_ = is_above && is_below_2;
          const i64 masked_table = and_ ? table_in : i64(2048);
          const i32 remainder_2 = k_2 % 64;
          const i32 index_14 = index * 128;
          const i32 index_15 = k_2 / 64;
          const i32 index_16 = index_14 + index_15;
          const i64 table_in_2 = load<1, Cache::constant>(table + index_16).v[0];
          const bool is_below_3 = saturate_i32(table_in_2) < 2048;
          const bool is_above_2 = saturate_i32(table_in_2) >= 0;
          const bool and_2 = is_above_2 && is_below_3;
          const i64 masked_table_2 = and_2 ? table_in_2 : i64(2048);
          const i32 remainder_3 = k_2 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(acc, exp_product_bf16, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(product);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) < saturate_i32(lengths_in)) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product);
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            sum_of_exp_product[r] = Sum::identity<f32>();
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 exp_product_offset = fast::exp_offset(clamped_row_max);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) < saturate_i32(lengths_in)) ? product[r][c].v[v] : (-infinity());
                const f32 exp_product = fast::exp2(fmaf(masked_product, 0.12751743f, exp_product_offset));
                sum_of_exp_product[r] += exp_product;
                exp_product_bf16_wide[r][c].v[v] = exp_product;
              }
            }
          }
          reduce_lanes<Sum, 4>(sum_of_exp_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const f32 difference = max((new_row_max == (-infinity())) ? 0.0f : new_row_max, -3.4028235e+38f) - max(row_max[r], -3.4028235e+38f);
            new_row_sum[r] = (row_sum[r] * fast::exp(-difference)) + sum_of_exp_product[r];
          }
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_product_bf16);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 clamped_row_max_2 = max(row_max[r], -3.4028235e+38f);
            const f32 difference = clamped_row_max - clamped_row_max_2;
            const f32 exp_row_max = fast::exp(-difference);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                acc[r][c].v[v] = acc[r][c].v[v] * exp_row_max;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_max[r] = max(row_max[r], max_of_product[r]);
          }
          f32 new_row_sum_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            new_row_sum_old[r] = new_row_sum[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_sum[r] = new_row_sum_old[r];
          }
          wait_full(v_ring, v_turn);
          zero_unused<v_block, true, 128>(v_blocks + v_turn.place * v_block::bytes, [&](i32 i) { return (k_2 + i) < saturate_i32(lengths_in_2); });
          bulk_store_fence();
          warpgroup_sync(group);
        }
        const i64 k_3_end = masked_lengths, k_3_step = 64;
        for (i64 k_3_i = 0; k_3_i < k_3_end; k_3_i += k_3_step) {
          const i32 k_3 = i32(k_3_i);
          const i32 index_17 = index * 128;
          const i32 index_18 = k_3 / 64;
          const i32 index_19 = index_17 + index_18;
          const i64 table_in_3 = load<1, Cache::constant>(table + index_19).v[0];
          const bool is_below_4 = saturate_i32(table_in_3) < 2048;
          const bool is_above_3 = saturate_i32(table_in_3) >= 0;
          const bool and_3 = is_above_3 && is_below_4;
          const i64 masked_table_3 = and_3 ? table_in_3 : i64(2048);
          const i32 remainder_4 = k_3 % 64;
          const i32 index_20 = index * 128;
          const i32 index_21 = k_3 / 64;
          const i32 index_22 = index_20 + index_21;
          const i64 table_in_4 = load<1, Cache::constant>(table + index_22).v[0];
          const bool is_below_5 = saturate_i32(table_in_4) < 2048;
          const bool is_above_4 = saturate_i32(table_in_4) >= 0;
          const bool and_4 = is_above_4 && is_below_5;
          const i64 masked_table_4 = and_4 ? table_in_4 : i64(2048);
          const i32 remainder_5 = k_3 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(product_2, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(acc, exp_product_bf16, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(product_2);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product_2[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                max_of_product_2[r] = max(max_of_product_2[r], product_2[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_product_2);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product_2[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            sum_of_exp_product_2[r] = Sum::identity<f32>();
            const f32 new_row_max = max(row_max[r], max_of_product_2[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 exp_product_offset = fast::exp_offset(clamped_row_max);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 exp_product = fast::exp2(fmaf(product_2[r][c].v[v], 0.12751743f, exp_product_offset));
                sum_of_exp_product_2[r] += exp_product;
                exp_product_bf16_wide[r][c].v[v] = exp_product;
              }
            }
          }
          reduce_lanes<Sum, 4>(sum_of_exp_product_2);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product_2[r]);
            const f32 difference = max((new_row_max == (-infinity())) ? 0.0f : new_row_max, -3.4028235e+38f) - max(row_max[r], -3.4028235e+38f);
            new_row_sum_2[r] = (row_sum[r] * fast::exp(-difference)) + sum_of_exp_product_2[r];
          }
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_product_bf16);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 new_row_max = max(row_max[r], max_of_product_2[r]);
            const bool is_empty = new_row_max == (-infinity());
            const f32 finite_row_max = is_empty ? 0.0f : new_row_max;
            const f32 clamped_row_max = max(finite_row_max, -3.4028235e+38f);
            const f32 clamped_row_max_2 = max(row_max[r], -3.4028235e+38f);
            const f32 difference = clamped_row_max - clamped_row_max_2;
            const f32 exp_row_max = fast::exp(-difference);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                acc[r][c].v[v] = acc[r][c].v[v] * exp_row_max;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_max[r] = max(row_max[r], max_of_product_2[r]);
          }
          f32 new_row_sum_2_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            new_row_sum_2_old[r] = new_row_sum_2[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            row_sum[r] = new_row_sum_2_old[r];
          }
        }
        wait_full(v_ring, v_turn);
        wgmma_block<v_block>(acc, exp_product_bf16, v_blocks + v_turn.place * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_product_bf16);
        release<1>(v_ring, v_turn.place);
        v_turn.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();

      const int t52_rows = end_inside(i64(0), 8, 64);
      bf16* const t52_at = t52 + index * 8192 + remainder * 1024 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == (-infinity());
        const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
        const f32 reciprocal_row_sum = fast::reciprocal(finite_row_sum);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t52_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t52_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t52_out.v[v] = acc[r][c].v[v] * reciprocal_row_sum;
            }
            t52_parts[part] = from_f32<bf16>(t52_out);
          }
          const int c = wide;
          store_if(r * 8 + g < t52_rows, t52_at + r * 1024 + c * 32, across_quad(t52_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
