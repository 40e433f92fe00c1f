// wgmma_b2b threads=256 longest_first=true rounds=ahead; predicted 750 us
// le_matmul_where_mul_3: t21 f32[16,4096], t43 f32[16,4096], q bf16[16,4096,128], t45 bf16[16,4096,128], k bf16[16,4096,128], v bf16[16,4096,128] -> t57 bf16[16,4096,128]
// schedule: wgmma_b2b threads=256 longest_first=true rounds=ahead
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
// tiles [128,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
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

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_3(const f32* __restrict__ t21, const f32* __restrict__ t43, const bf16* __restrict__ q, const bf16* __restrict__ t45, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ t57, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap t45_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 128, 128, Major::k>;
  const u32 q_blocks = block_stage();
  using k_block = Block<bf16, 64, 128, Major::k>;
  using k_block_turned = Block<bf16, 128, 64, Major::mn>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using t45_block = Block<bf16, 128, 128, Major::k>;
  const u32 t45_blocks = k_blocks + 2 * k_block::bytes;
  using v_block = Block<bf16, 64, 128, Major::k>;
  const u32 v_blocks = t45_blocks + 2 * t45_block::bytes;
  __shared__ TmaPipeline<2> q_ring;
  open_pipeline<2, 1>(q_ring);
  __shared__ TmaPipeline<2> k_ring;
  open_pipeline<2, 1>(k_ring);
  __shared__ TmaPipeline<2> t45_ring;
  open_pipeline<2, 1>(t45_ring);
  __shared__ TmaPipeline<2> v_ring;
  open_pipeline<2, 1>(v_ring);
  PipelineState<2> q_turn;
  PipelineState<2> k_turn, k_turn_late;
  PipelineState<2> t45_turn;
  PipelineState<2> v_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
        const i32 program_2 = program % 16;
        const i32 program_1 = 31 - program / 16;
        const i32 index = program_1 * 128;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, index, program_2);
        q_turn.next();
        Barrier& t45_full = refill(t45_ring, t45_turn, t45_block::bytes);
        tma_load_panels<2, t45_block::panel_bytes, 64>(t45_blocks + t45_turn.place * t45_block::bytes, t45_map, t45_full, 0, index, program_2);
        t45_turn.next();
        const i32 end = index + 128;
        const i32 index_2 = program_1 * 128;
        const i32 index_3 = index_2 + (-63);
        const i32 index_8 = index_3 + 64;
        const i32 index_7 = end + (-1);
        const i32 end_2 = min(index_8, index_7);
        const i32 begin_2 = max(end_2, 0);
        const i32 index_9 = begin_2 / 64;
        const i32 index_10 = index_9 * 64;
        const i32 end_3 = min(index_10, end);
        const i32 begin_3 = max(end_3, 0);
        for (i64 k_2 = begin_3; k_2 < end; k_2 += 64) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(k_2), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(k_2), program_2);
          v_turn.next();
        }
        const bool is_below = begin_3 < end;
        const i32 masked_end = is_below ? begin_3 : 0;
        for (i64 k_3 = 0; k_3 < masked_end; k_3 += 64) {
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
    for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
      const i32 program_1 = 31 - program / 16;
      const i32 program_2 = program % 16;
      const i32 index = program_1 * 128;
      const i32 end = index + 128;
      const i32 index_2 = program_1 * 128;
      const i32 index_3 = index_2 + (-63);
      const i32 index_4 = index_3 + 64;
      const i32 begin = max(index_4, 0);
      const i32 index_5 = begin / 64;
      const i32 index_6 = index_5 * 64;
      const i32 index_7 = end + (-1);
      const i32 index_8 = index_3 + 64;
      const i32 end_2 = min(index_8, index_7);
      const i32 begin_2 = max(end_2, 0);
      const i32 index_9 = begin_2 / 64;
      const i32 index_10 = index_9 * 64;
      const i32 end_3 = min(index_10, end);
      const i32 begin_3 = max(end_3, 0);
      const bool is_below = begin_3 < end;
      const i32 masked_end = is_below ? begin_3 : 0;

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
      Vec<f32, 2> exp_product[2][8];
      Vec<f32, 2> product_2[2][8];
      Vec<f32, 2> exp_product_bf16_wide[2][8];
      Vec<f32, 2> product_3[2][8];
      Vec<f32, 2> exp_product_2[2][8];
      Vec<f32, 2> product_4[2][8];
      wait_full(q_ring, q_turn);
      wait_full(t45_ring, t45_turn);
      Vec<bf16, 2> exp_product_bf16[2][8];
      const i64 k_2_end = end, k_2_step = 64;
      if (begin_3 < k_2_end) {
        {
          const i32 k_2 = i32(begin_3);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(product_2, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(product);
          k_turn.next();
          wgmma_pin(product_2);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in[2];
          const f32* const t21_at = t21 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in[r] = load<1, Cache::constant>(t21_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 index_11 = index + (r * 8 + g);
            const f32 exp_product_offset = fast::exp_offset(t21_in[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) <= index_11) ? product[r][c].v[v] : (-infinity());
                exp_product[r][c].v[v] = fast::exp2(fmaf(masked_product, 0.12751743f, exp_product_offset));
              }
            }
          }
          f32 t43_in[2];
          const f32* const t43_at = t43 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in[r] = load<1, Cache::constant>(t43_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 index_11 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_exp_product = ((k_2 + ((c * 4 + t) * 2 + v)) <= index_11) ? (exp_product[r][c].v[v] * (product_2[r][c].v[v] + t43_in[r])) : 0.0f;
                exp_product_bf16_wide[r][c].v[v] = masked_exp_product * 0.088388346f;
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
        }
        for (i64 k_2_i = begin_3 + k_2_step; k_2_i < k_2_end; k_2_i += k_2_step) {
          const i32 k_2 = i32(k_2_i);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(product, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(product_2, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_block<k_block_turned>(acc, exp_product_bf16, k_blocks + k_turn_late.place * k_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(product);
          k_turn.next();
          wgmma_pin(product_2);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in[2];
          const f32* const t21_at = t21 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in[r] = load<1, Cache::constant>(t21_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 index_11 = index + (r * 8 + g);
            const f32 exp_product_offset = fast::exp_offset(t21_in[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_product = ((k_2 + ((c * 4 + t) * 2 + v)) <= index_11) ? product[r][c].v[v] : (-infinity());
                exp_product[r][c].v[v] = fast::exp2(fmaf(masked_product, 0.12751743f, exp_product_offset));
              }
            }
          }
          f32 t43_in[2];
          const f32* const t43_at = t43 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in[r] = load<1, Cache::constant>(t43_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 index_11 = index + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 masked_exp_product = ((k_2 + ((c * 4 + t) * 2 + v)) <= index_11) ? (exp_product[r][c].v[v] * (product_2[r][c].v[v] + t43_in[r])) : 0.0f;
                exp_product_bf16_wide[r][c].v[v] = masked_exp_product * 0.088388346f;
              }
            }
          }
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_product_bf16);
          release<1>(k_ring, k_turn_late.place);
          k_turn_late.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_wide[r][c]);
            }
          }
        }
        const i64 k_3_end = masked_end, k_3_step = 64;
        for (i64 k_3_i = 0; k_3_i < k_3_end; k_3_i += k_3_step) {
          const i32 k_3 = i32(k_3_i);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(product_3, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(product_4, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_block<k_block_turned>(acc, exp_product_bf16, k_blocks + k_turn_late.place * k_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(product_3);
          k_turn.next();
          wgmma_pin(product_4);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in[2];
          const f32* const t21_at = t21 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in[r] = load<1, Cache::constant>(t21_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 exp_product_offset = fast::exp_offset(t21_in[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                exp_product_2[r][c].v[v] = fast::exp2(fmaf(product_3[r][c].v[v], 0.12751743f, exp_product_offset));
              }
            }
          }
          f32 t43_in[2];
          const f32* const t43_at = t43 + program_2 * 4096 + index + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in[r] = load<1, Cache::constant>(t43_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                exp_product_bf16_wide[r][c].v[v] = (exp_product_2[r][c].v[v] * (product_4[r][c].v[v] + t43_in[r])) * 0.088388346f;
              }
            }
          }
          wgmma_wait<0>();
          wgmma_pin(acc);
          wgmma_pin(exp_product_bf16);
          release<1>(k_ring, k_turn_late.place);
          k_turn_late.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_wide[r][c]);
            }
          }
        }
        wgmma_block<k_block_turned>(acc, exp_product_bf16, k_blocks + k_turn_late.place * k_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_product_bf16);
        release<1>(k_ring, k_turn_late.place);
        k_turn_late.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();
      release<1>(t45_ring, t45_turn.place);
      t45_turn.next();

      bf16* const t57_at = t57 + program_2 * 524288 + index * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t57_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t57_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t57_out.v[v] = acc[r][c].v[v];
            }
            t57_parts[part] = from_f32<bf16>(t57_out);
          }
          const int c = wide;
          store(t57_at + r * 1024 + c * 32, across_quad(t57_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
