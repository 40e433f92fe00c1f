// wgmma_b2b threads=256 longest_first=true rounds=fa3_pingpong; predicted 3.99e+03 us
// sub_ge_le_bit_and_0: q bf16[16,16384,128], k bf16[16,16384,128], v bf16[16,16384,128] -> t40 bf16[16,16384,128]
// schedule: wgmma_b2b threads=256 longest_first=true rounds=fa3_pingpong
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

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) sub_ge_le_bit_and_0(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ t40, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 128, 128, Major::k>;
  const u32 q_blocks = block_stage();
  using k_block = Block<bf16, 128, 128, Major::k>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using v_block = Block<bf16, 128, 128, Major::mn>;
  const u32 v_blocks = k_blocks + 2 * k_block::bytes;
  __shared__ TmaPipeline<2> q_ring;
  open_pipeline<2, 1>(q_ring);
  __shared__ TmaPipeline<2> k_ring;
  open_pipeline<2, 1>(k_ring);
  __shared__ TmaPipeline<2> v_ring;
  open_pipeline<2, 1>(v_ring);
  PipelineState<2> q_turn;
  PipelineState<2> k_turn;
  PipelineState<2> v_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 2048; ++wave) {
        const i32 program_2 = program % 16;
        const i32 program_1 = 127 - program / 16;
        const i32 index = program_1 * 128;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, index, program_2);
        q_turn.next();
        const i32 index_2 = index + (-1023);
        const i32 begin = max(0, index_2);
        const i32 index_3 = begin / 128;
        const i32 first_ = index_3 * 128;
        const i32 index_17 = program_1 * 128;
        const i32 index_18 = index_17 + (-896);
        const i32 index_19 = index_18 + 127;
        const i32 index_20 = index_19 - first_;
        const i32 begin_4 = max(index_20, 0);
        const i32 index_21 = begin_4 / 128;
        const i32 index_22 = index_21 * 128;
        const i32 index_23 = first_ + index_22;
        const i32 end = index + 128;
        const i32 end_3 = min(index_23, end);
        const i32 index_4 = program_1 * 128;
        const i32 index_5 = index_4 + (-127);
        const i32 index_12 = index_5 + 128;
        const i32 index_11 = end + (-1);
        const i32 end_2 = min(index_12, index_11);
        const i32 index_13 = end_2 - first_;
        const i32 begin_3 = max(index_13, 0);
        const i32 index_14 = begin_3 / 128;
        const i32 index_15 = index_14 * 128;
        const i32 index_16 = first_ + index_15;
        const i32 end_4 = min(index_16, end);
        const i32 begin_5 = max(end_4, end_3);
        const i32 index_24 = begin_5 - end_3;
        const i32 begin_6 = max(index_24, 0);
        const i32 index_25 = end - begin_6;
        for (i64 k_2 = first_; k_2 < index_25; k_2 += 128) {
          const bool is_below_2 = saturate_i32(k_2) < end_3;
          const i32 masked_first = is_below_2 ? 0 : begin_6;
          const i32 index_26 = i32(k_2 + i64(masked_first));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, index_26, program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, index_26, program_2);
          v_turn.next();
        }
        const bool is_below = first_ < index_25;
        const i32 chosen = is_below ? begin_5 : end_3;
        for (i64 k_3 = end_3; k_3 < chosen; k_3 += 128) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(k_3), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(k_3), program_2);
          v_turn.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    if (group == 1) pingpong_signal<2>(group);
    for (i32 wave = 0, program; (program = serpentine(wave)) < 2048; ++wave) {
      const i32 program_1 = 127 - program / 16;
      const i32 program_2 = program % 16;
      const i32 index = program_1 * 128;
      const i32 index_2 = index + (-1023);
      const i32 begin = max(0, index_2);
      const i32 index_3 = begin / 128;
      const i32 first_ = index_3 * 128;
      const i32 end = index + 128;
      const i32 index_4 = program_1 * 128;
      const i32 index_5 = index_4 + (-127);
      const i32 index_6 = index_5 + 128;
      const i32 index_7 = index_6 - first_;
      const i32 begin_2 = max(index_7, 0);
      const i32 index_8 = begin_2 / 128;
      const i32 index_9 = index_8 * 128;
      const i32 index_10 = first_ + index_9;
      const i32 index_11 = end + (-1);
      const i32 index_12 = index_5 + 128;
      const i32 end_2 = min(index_12, index_11);
      const i32 index_13 = end_2 - first_;
      const i32 begin_3 = max(index_13, 0);
      const i32 index_14 = begin_3 / 128;
      const i32 index_15 = index_14 * 128;
      const i32 index_16 = first_ + index_15;
      const i32 index_17 = program_1 * 128;
      const i32 index_18 = index_17 + (-896);
      const i32 index_19 = index_18 + 127;
      const i32 index_20 = index_19 - first_;
      const i32 begin_4 = max(index_20, 0);
      const i32 index_21 = begin_4 / 128;
      const i32 index_22 = index_21 * 128;
      const i32 index_23 = first_ + index_22;
      const i32 end_3 = min(index_23, end);
      const i32 end_4 = min(index_16, end);
      const i32 begin_5 = max(end_4, end_3);
      const i32 index_24 = begin_5 - end_3;
      const i32 begin_6 = max(index_24, 0);
      const i32 index_25 = end - begin_6;
      const bool is_below = first_ < index_25;
      const i32 chosen = is_below ? begin_5 : end_3;

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

      Vec<f32, 2> product[2][16];
      f32 max_of_product[2];
      Vec<f32, 2> masked_product[2][16];
      f32 sum_of_exp_product[2];
      Vec<f32, 2> exp_product_bf16_wide[2][16];
      f32 new_row_sum[2];
      Vec<f32, 2> product_2[2][16];
      f32 max_of_product_2[2];
      f32 sum_of_exp_product_2[2];
      f32 new_row_sum_2[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> exp_product_bf16[2][16];
      const i64 k_2_end = index_25, k_2_step = 128;
      if (first_ < k_2_end) {
        {
          const i32 k_2 = i32(first_);
          const bool is_below_2 = k_2 < end_3;
          const i32 masked_first = is_below_2 ? 0 : begin_6;
          const i32 index_26 = k_2 + masked_first;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(product);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
            const i32 index_27 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const i32 index_28 = index_27 + ((index_26 + ((c * 4 + t) * 2 + v)) * (-1));
                const f32 masked_product_2 = ((index_28 >= 0) && (index_28 <= 1023)) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product_2);
                masked_product[r][c].v[v] = masked_product_2;
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
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 exp_product = fast::exp2(fmaf(masked_product[r][c].v[v], 0.12751743f, exp_product_offset));
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
            for (int c = 0; c < 16; ++c) {
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
        }
        for (i64 k_2_i = first_ + k_2_step; k_2_i < k_2_end; k_2_i += k_2_step) {
          const i32 k_2 = i32(k_2_i);
          const bool is_below_2 = k_2 < end_3;
          const i32 masked_first = is_below_2 ? 0 : begin_6;
          const i32 index_26 = k_2 + masked_first;
          wait_full(k_ring, k_turn);
          pingpong_wait(group);
          wgmma_block<q_block, k_block, 2>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(acc, exp_product_bf16, v_blocks + v_turn.place * v_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(product);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
            const i32 index_27 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const i32 index_28 = index_27 + ((index_26 + ((c * 4 + t) * 2 + v)) * (-1));
                const f32 masked_product_2 = ((index_28 >= 0) && (index_28 <= 1023)) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product_2);
                masked_product[r][c].v[v] = masked_product_2;
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
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 exp_product = fast::exp2(fmaf(masked_product[r][c].v[v], 0.12751743f, exp_product_offset));
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
            for (int c = 0; c < 16; ++c) {
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
        }
        const i64 k_3_end = chosen, k_3_step = 128;
        for (i64 k_3_i = end_3; k_3_i < k_3_end; k_3_i += k_3_step) {
          const i32 k_3 = i32(k_3_i);
          wait_full(k_ring, k_turn);
          pingpong_wait(group);
          wgmma_block<q_block, k_block, 2>(product_2, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(acc, exp_product_bf16, v_blocks + v_turn.place * v_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(product_2);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product_2[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 16; ++c) {
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
            for (int c = 0; c < 16; ++c) {
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
            for (int c = 0; c < 16; ++c) {
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

      bf16* const t40_at = t40 + program_2 * 2097152 + index * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == (-infinity());
        const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
        const f32 reciprocal_row_sum = fast::reciprocal(finite_row_sum);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t40_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t40_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t40_out.v[v] = acc[r][c].v[v] * reciprocal_row_sum;
            }
            t40_parts[part] = from_f32<bf16>(t40_out);
          }
          const int c = wide;
          store(t40_at + r * 1024 + c * 32, across_quad(t40_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
