// wgmma_b2b threads=256 longest_first=true rounds=fa3_pingpong; predicted 189 us
// le_matmul_where_mul_2: t39 bf16[2,12,1024,64], t39_1 bf16[2,12,1024,64], t39_2 bf16[2,12,1024,64] -> t85 bf16[2,12,1024,64]
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

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_2(const bf16* __restrict__ t39, const bf16* __restrict__ t39_1, const bf16* __restrict__ t39_2, bf16* __restrict__ t85, const __grid_constant__ TensorMap t39_map, const __grid_constant__ TensorMap t39_1_map, const __grid_constant__ TensorMap t39_2_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using t39_block = Block<bf16, 128, 64, Major::k>;
  const u32 t39_blocks = block_stage();
  using t39_1_block = Block<bf16, 128, 64, Major::k>;
  const u32 t39_1_blocks = t39_blocks + 2 * t39_block::bytes;
  using t39_2_block = Block<bf16, 64, 128, Major::mn>;
  const u32 t39_2_blocks = t39_1_blocks + 2 * t39_1_block::bytes;
  __shared__ TmaPipeline<2> t39_ring;
  open_pipeline<2, 1>(t39_ring);
  __shared__ TmaPipeline<2> t39_1_ring;
  open_pipeline<2, 1>(t39_1_ring);
  __shared__ TmaPipeline<2> t39_2_ring;
  open_pipeline<2, 1>(t39_2_ring);
  PipelineState<2> t39_turn;
  PipelineState<2> t39_1_turn;
  PipelineState<2> t39_2_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 192; ++wave) {
        const i32 program_2 = program % 24;
        const i32 index_2 = program_2 / 12;
        const i32 remainder = program_2 % 12;
        const i32 program_1 = 7 - program / 24;
        const i32 index = program_1 * 128;
        Barrier& t39_full = refill(t39_ring, t39_turn, t39_block::bytes);
        tma_load_panels<1, t39_block::panel_bytes, 64>(t39_blocks + t39_turn.place * t39_block::bytes, t39_map, t39_full, 0, index, remainder, index_2);
        t39_turn.next();
        const i32 end = index + 128;
        const i32 index_3 = program_1 * 128;
        const i32 index_4 = index_3 + (-127);
        const i32 index_9 = index_4 + 128;
        const i32 index_8 = end + (-1);
        const i32 end_2 = min(index_9, index_8);
        const i32 begin_2 = max(end_2, 0);
        const i32 index_10 = begin_2 / 128;
        const i32 index_11 = index_10 * 128;
        const i32 end_3 = min(index_11, end);
        const i32 begin_3 = max(end_3, 0);
        for (i64 k = begin_3; k < end; k += 128) {
          Barrier& t39_1_full = refill(t39_1_ring, t39_1_turn, t39_1_block::bytes);
          tma_load_panels<1, t39_1_block::panel_bytes, 64>(t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, t39_1_map, t39_1_full, 0, i32(k), remainder, index_2);
          t39_1_turn.next();
          Barrier& t39_2_full = refill(t39_2_ring, t39_2_turn, t39_2_block::bytes);
          tma_load_panels<1, t39_2_block::panel_bytes, 64>(t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, t39_2_map, t39_2_full, 0, i32(k), remainder, index_2);
          t39_2_turn.next();
        }
        const bool is_below = begin_3 < end;
        const i32 masked_end = is_below ? begin_3 : 0;
        for (i64 k_2 = 0; k_2 < masked_end; k_2 += 128) {
          Barrier& t39_1_full = refill(t39_1_ring, t39_1_turn, t39_1_block::bytes);
          tma_load_panels<1, t39_1_block::panel_bytes, 64>(t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, t39_1_map, t39_1_full, 0, i32(k_2), remainder, index_2);
          t39_1_turn.next();
          Barrier& t39_2_full = refill(t39_2_ring, t39_2_turn, t39_2_block::bytes);
          tma_load_panels<1, t39_2_block::panel_bytes, 64>(t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, t39_2_map, t39_2_full, 0, i32(k_2), remainder, index_2);
          t39_2_turn.next();
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
      const i32 index = program_1 * 128;
      const i32 remainder = program_2 % 12;
      const i32 index_2 = program_2 / 12;
      const i32 end = index + 128;
      const i32 index_3 = program_1 * 128;
      const i32 index_4 = index_3 + (-127);
      const i32 index_5 = index_4 + 128;
      const i32 begin = max(index_5, 0);
      const i32 index_6 = begin / 128;
      const i32 index_7 = index_6 * 128;
      const i32 index_8 = end + (-1);
      const i32 index_9 = index_4 + 128;
      const i32 end_2 = min(index_9, index_8);
      const i32 begin_2 = max(end_2, 0);
      const i32 index_10 = begin_2 / 128;
      const i32 index_11 = index_10 * 128;
      const i32 end_3 = min(index_11, end);
      const i32 begin_3 = max(end_3, 0);
      const bool is_below = begin_3 < end;
      const i32 masked_end = is_below ? begin_3 : 0;

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
      wait_full(t39_ring, t39_turn);
      Vec<bf16, 2> exp_product_bf16[2][16];
      const i64 k_end = end, k_step = 128;
      if (begin_3 < k_end) {
        {
          const i32 k = i32(begin_3);
          wait_full(t39_1_ring, t39_1_turn);
          wgmma_block<t39_block, t39_1_block, 2>(product, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(product);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
            const i32 index_12 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product_2 = ((k + ((c * 4 + t) * 2 + v)) <= index_12) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product_2);
                masked_product[r][c].v[v] = masked_product_2;
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] *= 0.125f;
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
                const f32 exp_product = fast::exp2(fmaf(masked_product[r][c].v[v], 0.18033688f, exp_product_offset));
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
            for (int c = 0; c < 8; ++c) {
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
        for (i64 k_i = begin_3 + k_step; k_i < k_end; k_i += k_step) {
          const i32 k = i32(k_i);
          wait_full(t39_1_ring, t39_1_turn);
          pingpong_wait(group);
          wgmma_block<t39_block, t39_1_block, 2>(product, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wait_full(t39_2_ring, t39_2_turn);
          wgmma_block<t39_2_block>(acc, exp_product_bf16, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(product);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] = Max::identity<f32>();
            const i32 index_12 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product_2 = ((k + ((c * 4 + t) * 2 + v)) <= index_12) ? product[r][c].v[v] : (-infinity());
                max_of_product[r] = max(max_of_product[r], masked_product_2);
                masked_product[r][c].v[v] = masked_product_2;
              }
            }
          }
          reduce_lanes<Max, 4>(max_of_product);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            max_of_product[r] *= 0.125f;
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
                const f32 exp_product = fast::exp2(fmaf(masked_product[r][c].v[v], 0.18033688f, exp_product_offset));
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
          release<1>(t39_2_ring, t39_2_turn.place);
          t39_2_turn.next();
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
            for (int c = 0; c < 8; ++c) {
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
        const i64 k_2_end = masked_end, k_2_step = 128;
        for (i64 k_2_i = 0; k_2_i < k_2_end; k_2_i += k_2_step) {
          const i32 k_2 = i32(k_2_i);
          wait_full(t39_1_ring, t39_1_turn);
          pingpong_wait(group);
          wgmma_block<t39_block, t39_1_block, 2>(product_2, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wait_full(t39_2_ring, t39_2_turn);
          wgmma_block<t39_2_block>(acc, exp_product_bf16, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(product_2);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
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
            max_of_product_2[r] *= 0.125f;
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
                const f32 exp_product = fast::exp2(fmaf(product_2[r][c].v[v], 0.18033688f, exp_product_offset));
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
          release<1>(t39_2_ring, t39_2_turn.place);
          t39_2_turn.next();
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
            for (int c = 0; c < 8; ++c) {
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
        wait_full(t39_2_ring, t39_2_turn);
        wgmma_block<t39_2_block>(acc, exp_product_bf16, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_product_bf16);
        release<1>(t39_2_ring, t39_2_turn.place);
        t39_2_turn.next();
      }
      release<1>(t39_ring, t39_turn.place);
      t39_turn.next();

      bf16* const t85_at = t85 + index_2 * 786432 + remainder * 64 + index * 768 + g * 768 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool is_empty = row_max[r] == (-infinity());
        const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
        const f32 reciprocal_row_sum = fast::reciprocal(finite_row_sum);
#pragma unroll
        for (int wide = 0; wide < 2; ++wide) {
          Vec<bf16, 2> t85_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t85_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t85_out.v[v] = acc[r][c].v[v] * reciprocal_row_sum;
            }
            t85_parts[part] = from_f32<bf16>(t85_out);
          }
          const int c = wide;
          store(t85_at + r * 6144 + c * 32, across_quad(t85_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
