// wgmma_b2b threads=256 longest_first=true; predicted 174 us
// le_matmul_where_mul_3: maximum_out f32[16,4096], where_out f32[16,4096], q bf16[16,4096,128], mul_out bf16[16,4096,128], k bf16[16,4096,128], v bf16[16,4096,128] -> out bf16[16,4096,128]
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
#include "tw_cuda/wgmma_n128.cuh"
#include "tw_cuda/wgmma_n64.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_3(const f32* __restrict__ maximum_out, const f32* __restrict__ where_out, const bf16* __restrict__ q, const bf16* __restrict__ mul_out, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ out, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap mul_out_map, const __grid_constant__ TensorMap v_map) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  using q_block = Block<bf16, 128, 128, Major::k>;
  const u32 q_blocks = uniform(block_stage());
  using k_block = Block<bf16, 64, 128, Major::k>;
  using k_block_transposed = Block<bf16, 128, 64, Major::mn>;
  const u32 k_blocks = q_blocks + 2 * q_block::bytes;
  using mul_out_block = Block<bf16, 128, 128, Major::k>;
  const u32 mul_out_blocks = k_blocks + 2 * k_block::bytes;
  using v_block = Block<bf16, 64, 128, Major::k>;
  const u32 v_blocks = mul_out_blocks + 2 * mul_out_block::bytes;
  __shared__ TmaPipeline<2> q_pipeline;
  open_pipeline<2, 1>(q_pipeline);
  __shared__ TmaPipeline<2> k_pipeline;
  open_pipeline<2, 1>(k_pipeline);
  __shared__ TmaPipeline<2> mul_out_pipeline;
  open_pipeline<2, 1>(mul_out_pipeline);
  __shared__ TmaPipeline<2> v_pipeline;
  open_pipeline<2, 1>(v_pipeline);
  PipelineState<2> q_state(uniform(barriers_of(q_pipeline)));
  PipelineState<2> k_state(uniform(barriers_of(k_pipeline)));
  PipelineState<2> mul_out_state(uniform(barriers_of(mul_out_pipeline)));
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
        Barrier& mul_out_full = refill(mul_out_pipeline, mul_out_state, mul_out_block::bytes);
        tma_load_panels<2, mul_out_block::panel_bytes, 64>(mul_out_blocks + mul_out_state.stage * mul_out_block::bytes, mul_out_map, mul_out_full, 0, first_row, program_2);
        mul_out_state.next();
        const i32 end = first_row + 128;
        for (i64 column = first_row; column < end; column += 64) {
          Barrier& k_full = refill(k_pipeline, k_state, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_state.stage * k_block::bytes, k_map, k_full, 0, i32(column), program_2);
          k_state.next();
          Barrier& v_full = refill(v_pipeline, v_state, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_state.stage * v_block::bytes, v_map, v_full, 0, i32(column), program_2);
          v_state.next();
        }
        for (i64 column_2 = 0; column_2 < first_row; column_2 += 64) {
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

      Vec<f32, 2> scores[2][8];
      Vec<f32, 2> exp_scores[2][8];
      Vec<f32, 2> product[2][8];
      Vec<bf16, 2> exp_scores_bf16[2][8];
      wait_full(q_state);
      wait_full(mul_out_state);
      f32 maximum_out_in[2];
      f32 where_out_in[2];
      {
        const i32 column_2 = i32(first_row);
        const f32* const maximum_out_at = maximum_out + program_2 * 4096 + first_row + g;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          maximum_out_in[r] = load<1, Cache::constant>(maximum_out_at + r * 8).v[0];
        }
        const f32* const where_out_at = where_out + program_2 * 4096 + first_row + g;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          where_out_in[r] = load<1, Cache::constant>(where_out_at + r * 8).v[0];
        }
      }
      const auto run_round = [&](const i32 column, const bool masked) {
        wait_full(k_state);
        wgmma_block<q_block, k_block, 2>(scores, q_blocks + q_state.stage * q_block::bytes, k_blocks + k_state.stage * k_block::bytes, group, false);
        wait_full(v_state);
        wgmma_block<mul_out_block, v_block, 2>(product, mul_out_blocks + mul_out_state.stage * mul_out_block::bytes, v_blocks + v_state.stage * v_block::bytes, group, false);
        wgmma_wait<1>();
        wgmma_pin(scores);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const i32 row_index = first_row + (r * 8 + g);
          const f32 exp_scores_offset = fast::exp_offset(maximum_out_in[r]);
#pragma unroll
          for (int c = 0; c < 8; ++c) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_scores = !masked || column + ((c * 4 + t) * 2 + v) <= row_index ? scores[r][c].v[v] : -infinity();
              exp_scores[r][c].v[v] = fast::exp2(fmaf(masked_scores, 0.12751743f, exp_scores_offset));
            }
          }
        }
        wgmma_wait<0>();
        wgmma_pin(product);
        release<1>(v_state);
        v_state.next();
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const i32 row_index = first_row + (r * 8 + g);
#pragma unroll
          for (int c = 0; c < 8; ++c) {
            Vec<f32, 2> exp_scores_bf16_new;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              const f32 masked_exp_scores = !masked || column + ((c * 4 + t) * 2 + v) <= row_index ? exp_scores[r][c].v[v] * (product[r][c].v[v] + where_out_in[r]) : 0.0f;
              exp_scores_bf16_new.v[v] = masked_exp_scores * 0.088388346f;
            }
            exp_scores_bf16[r][c] = from_f32<bf16>(exp_scores_bf16_new);
          }
        }
        wgmma_block<k_block_transposed>(acc, exp_scores_bf16, k_blocks + k_state.stage * k_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(acc);
        wgmma_pin(exp_scores_bf16);
        release<1>(k_state);
        k_state.next();
      };
      for (i32 column = first_row; column < end; column += 64) {
        run_round(column, true);
      }
      for (i32 column_2 = 0; column_2 < first_row; column_2 += 64) {
        run_round(column_2, false);
      }
      OwnGroup::wait();
      release<1>(q_state);
      q_state.next();
      release<1>(mul_out_state);
      mul_out_state.next();

      bf16* const out_at = out + program_2 * 524288 + first_row * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> out_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> out_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              out_out.v[v] = acc[r][c].v[v];
            }
            out_parts[part] = from_f32<bf16>(out_out);
          }
          const int c = wide;
          store(out_at + r * 1024 + c * 32, across_quad(out_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
