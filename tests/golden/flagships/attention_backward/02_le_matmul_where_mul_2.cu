// wgmma_b2b threads=256 longest_first=true; predicted 1.1e+03 us
// le_matmul_where_mul_2: k bf16[16,4096,128], v bf16[16,4096,128], q bf16[16,4096,128], t21 f32[16,4096], t45 bf16[16,4096,128], t43 f32[16,4096] -> t48 bf16[16,4096,128], t59 bf16[16,4096,128]
// schedule: wgmma_b2b threads=256 longest_first=true
// tiles [128,128]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 16 vectors of 2 a thread
// tiles [128,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 2 rows, 8 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/quad.cuh"
#include "tw_cuda/tile_swizzle.cuh"
#include "tw_cuda/wgmma_dot.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_2(const bf16* __restrict__ k, const bf16* __restrict__ v_, const bf16* __restrict__ q, const f32* __restrict__ t21, const bf16* __restrict__ t45, const f32* __restrict__ t43, bf16* __restrict__ t48, bf16* __restrict__ t59, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap t45_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using k_block = Block<bf16, 128, 128, Major::k>;
  const u32 k_blocks = block_stage();
  using q_block = Block<bf16, 64, 128, Major::k>;
  using q_block_turned = Block<bf16, 128, 64, Major::mn>;
  const u32 q_blocks = k_blocks + 2 * k_block::bytes;
  using t45_block = Block<bf16, 128, 64, Major::mn>;
  using t45_block_turned = Block<bf16, 64, 128, Major::k>;
  const u32 t45_blocks = q_blocks + 2 * q_block::bytes;
  using v_block = Block<bf16, 128, 128, Major::k>;
  const u32 v_blocks = t45_blocks + 2 * t45_block::bytes;
  __shared__ TmaPipeline<2> k_ring;
  open_pipeline<2, 1>(k_ring);
  __shared__ TmaPipeline<2> q_ring;
  open_pipeline<2, 1>(q_ring);
  __shared__ TmaPipeline<2> t45_ring;
  open_pipeline<2, 1>(t45_ring);
  __shared__ TmaPipeline<2> v_ring;
  open_pipeline<2, 1>(v_ring);
  PipelineState<2> k_turn;
  PipelineState<2> q_turn;
  PipelineState<2> t45_turn;
  PipelineState<2> v_turn;
  wait_for_previous_kernel();
  if (threadIdx.x >= 256) {
    registers_down<24>();
    if (threadIdx.x == 256) {
      for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
        const i32 program_2 = program % 16;
        const i32 program_1 = program / 16;
        const i32 index = program_1 * 128;
        Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
        tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, index, program_2);
        k_turn.next();
        Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
        tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, index, program_2);
        v_turn.next();
        const i32 index_2 = index / 64;
        const i32 first_ = index_2 * 64;
        const i32 index_3 = program_1 * 128;
        const i32 index_4 = index_3 + 127;
        const i32 index_5 = index_4 + 63;
        const i32 index_6 = index_5 - first_;
        const i32 begin = max(index_6, 0);
        const i32 index_7 = begin / 64;
        const i32 index_8 = index_7 * 64;
        const i32 index_9 = first_ + index_8;
        const i32 index_10 = first_ + 64;
        const i32 begin_2 = max(index_9, index_10);
        const i32 end = min(begin_2, 4096);
        for (i64 k_2 = first_; k_2 < end; k_2 += 64) {
          Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
          tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, i32(k_2), program_2);
          q_turn.next();
          Barrier& t45_full = refill(t45_ring, t45_turn, t45_block::bytes);
          tma_load_panels<2, t45_block::panel_bytes, 64>(t45_blocks + t45_turn.place * t45_block::bytes, t45_map, t45_full, 0, i32(k_2), program_2);
          t45_turn.next();
        }
        const bool is_below = first_ < end;
        const i32 masked_first = is_below ? 4096 : end;
        for (i64 k_3 = end; k_3 < masked_first; k_3 += 64) {
          Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
          tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, i32(k_3), program_2);
          q_turn.next();
          Barrier& t45_full = refill(t45_ring, t45_turn, t45_block::bytes);
          tma_load_panels<2, t45_block::panel_bytes, 64>(t45_blocks + t45_turn.place * t45_block::bytes, t45_map, t45_full, 0, i32(k_3), program_2);
          t45_turn.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
      const i32 program_1 = program / 16;
      const i32 program_2 = program % 16;
      const i32 index = program_1 * 128;
      const i32 index_2 = index / 64;
      const i32 first_ = index_2 * 64;
      const i32 index_3 = program_1 * 128;
      const i32 index_4 = index_3 + 127;
      const i32 index_5 = index_4 + 63;
      const i32 index_6 = index_5 - first_;
      const i32 begin = max(index_6, 0);
      const i32 index_7 = begin / 64;
      const i32 index_8 = index_7 * 64;
      const i32 index_9 = first_ + index_8;
      const i32 index_10 = first_ + 64;
      const i32 begin_2 = max(index_9, index_10);
      const i32 end = min(begin_2, 4096);
      const bool is_below = first_ < end;
      const i32 masked_first = is_below ? 4096 : end;

      Vec<f32, 2> acc[2][16];
      Vec<f32, 2> acc_2[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            acc[r][c].v[v] = 0.0f;
            acc_2[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> product[2][8];
      Vec<bf16, 2> exp_product_bf16[2][8];
      Vec<f32, 2> exp_product[2][8];
      Vec<f32, 2> product_2[2][8];
      Vec<bf16, 2> exp_product_bf16_2[2][8];
      wait_full(k_ring, k_turn);
      wait_full(v_ring, v_turn);
      for (i32 k_2 = first_; k_2 < end; k_2 += 64) {
        wait_full(q_ring, q_turn);
        wgmma_block<k_block, q_block, 2>(product, k_blocks + k_turn.place * k_block::bytes, q_blocks + q_turn.place * q_block::bytes, group, false);
        wait_full(t45_ring, t45_turn);
        wgmma_block<v_block, t45_block_turned, 2>(product_2, v_blocks + v_turn.place * v_block::bytes, t45_blocks + t45_turn.place * t45_block::bytes, group, false);
        wgmma_wait<1>();
        wgmma_pin(product);
        Vec<f32, 2> t21_in[8];
        const f32* const t21_at = t21 + program_2 * 4096 + k_2 + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          t21_in[c] = load<2, Cache::constant>(t21_at + c * 8);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const i32 index_11 = index + (r * 8 + g);
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            Vec<f32, 2> exp_product_bf16_new;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_product = (index_11 <= (k_2 + ((c * 4 + t) * 2 + v))) ? product[r][c].v[v] : (-infinity());
              const f32 exp_product_2 = fast::exp(fmaf(masked_product, 0.088388346f, -t21_in[c].v[v]));
              exp_product_bf16_new.v[v] = exp_product_2;
              exp_product[r][c].v[v] = exp_product_2;
            }
            exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_new);
          }
        }
        wgmma_block<t45_block>(acc, exp_product_bf16, t45_blocks + t45_turn.place * t45_block::bytes, true);
        wgmma_wait<1>();
        wgmma_pin(product_2);
        Vec<f32, 2> t43_in[8];
        const f32* const t43_at = t43 + program_2 * 4096 + k_2 + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          t43_in[c] = load<2, Cache::constant>(t43_at + c * 8);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const i32 index_11 = index + (r * 8 + g);
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            Vec<f32, 2> exp_product_bf16_2_new;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_exp_product = (index_11 <= (k_2 + ((c * 4 + t) * 2 + v))) ? (exp_product[r][c].v[v] * (product_2[r][c].v[v] + t43_in[c].v[v])) : 0.0f;
              exp_product_bf16_2_new.v[v] = masked_exp_product * 0.088388346f;
            }
            exp_product_bf16_2[r][c] = from_f32<bf16>(exp_product_bf16_2_new);
          }
        }
        wgmma_block<q_block_turned>(acc_2, exp_product_bf16_2, q_blocks + q_turn.place * q_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_product_bf16);
        release<1>(t45_ring, t45_turn.place);
        t45_turn.next();
        wgmma_pin(acc_2);
        wgmma_pin(exp_product_bf16_2);
        release<1>(q_ring, q_turn.place);
        q_turn.next();
      }

      Vec<f32, 2> product_3[2][8];
      Vec<bf16, 2> exp_product_bf16_3[2][8];
      Vec<f32, 2> exp_product_2[2][8];
      Vec<f32, 2> product_4[2][8];
      Vec<bf16, 2> exp_product_bf16_4[2][8];
      wait_full(k_ring, k_turn);
      wait_full(v_ring, v_turn);
      for (i32 k_3 = end; k_3 < masked_first; k_3 += 64) {
        wait_full(q_ring, q_turn);
        wgmma_block<k_block, q_block, 2>(product_3, k_blocks + k_turn.place * k_block::bytes, q_blocks + q_turn.place * q_block::bytes, group, false);
        wait_full(t45_ring, t45_turn);
        wgmma_block<v_block, t45_block_turned, 2>(product_4, v_blocks + v_turn.place * v_block::bytes, t45_blocks + t45_turn.place * t45_block::bytes, group, false);
        wgmma_wait<1>();
        wgmma_pin(product_3);
        Vec<f32, 2> t21_in[8];
        const f32* const t21_at = t21 + program_2 * 4096 + k_3 + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          t21_in[c] = load<2, Cache::constant>(t21_at + c * 8);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            Vec<f32, 2> exp_product_bf16_3_new;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 exp_product_3 = fast::exp(fmaf(product_3[r][c].v[v], 0.088388346f, -t21_in[c].v[v]));
              exp_product_bf16_3_new.v[v] = exp_product_3;
              exp_product_2[r][c].v[v] = exp_product_3;
            }
            exp_product_bf16_3[r][c] = from_f32<bf16>(exp_product_bf16_3_new);
          }
        }
        wgmma_block<t45_block>(acc, exp_product_bf16_3, t45_blocks + t45_turn.place * t45_block::bytes, true);
        wgmma_wait<1>();
        wgmma_pin(product_4);
        Vec<f32, 2> t43_in[8];
        const f32* const t43_at = t43 + program_2 * 4096 + k_3 + t * 2;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          t43_in[c] = load<2, Cache::constant>(t43_at + c * 8);
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            Vec<f32, 2> exp_product_bf16_4_new;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              exp_product_bf16_4_new.v[v] = (exp_product_2[r][c].v[v] * (product_4[r][c].v[v] + t43_in[c].v[v])) * 0.088388346f;
            }
            exp_product_bf16_4[r][c] = from_f32<bf16>(exp_product_bf16_4_new);
          }
        }
        wgmma_block<q_block_turned>(acc_2, exp_product_bf16_4, q_blocks + q_turn.place * q_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_product_bf16_3);
        release<1>(t45_ring, t45_turn.place);
        t45_turn.next();
        wgmma_pin(acc_2);
        wgmma_pin(exp_product_bf16_4);
        release<1>(q_ring, q_turn.place);
        q_turn.next();
      }
      release<1>(k_ring, k_turn.place);
      k_turn.next();
      release<1>(v_ring, v_turn.place);
      v_turn.next();

      bf16* const t48_at = t48 + program_2 * 524288 + index * 128 + g * 128 + t * 8;
      bf16* const t59_at = t59 + program_2 * 524288 + index * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t48_parts[4];
          Vec<bf16, 2> t59_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t48_out;
            Vec<f32, 2> t59_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t48_out.v[v] = acc[r][c].v[v];
              t59_out.v[v] = acc_2[r][c].v[v];
            }
            t48_parts[part] = from_f32<bf16>(t48_out);
            t59_parts[part] = from_f32<bf16>(t59_out);
          }
          const int c = wide;
          store(t48_at + r * 1024 + c * 32, across_quad(t48_parts));
          store(t59_at + r * 1024 + c * 32, across_quad(t59_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
