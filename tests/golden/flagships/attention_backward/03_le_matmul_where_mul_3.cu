// threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true; predicted 201 us
// le_matmul_where_mul_3: t21 f32[16,4096], t43 f32[16,4096], q bf16[16,4096,128], t45 bf16[16,4096,128], k bf16[16,4096,128], v bf16[16,4096,128] -> t57 bf16[16,4096,128]
// schedule: threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true
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
        const i32 v3 = program_1 * 128;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, v3, program_2);
        q_turn.next();
        Barrier& t45_full = refill(t45_ring, t45_turn, t45_block::bytes);
        tma_load_panels<2, t45_block::panel_bytes, 64>(t45_blocks + t45_turn.place * t45_block::bytes, t45_map, t45_full, 0, v3, program_2);
        t45_turn.next();
        const i32 end = v3 + 128;
        const i32 v64 = program_1 * 128;
        const i32 v66 = v64 + (-63);
        const i32 v78 = v66 + 64;
        const i32 v76 = end + (-1);
        const i32 v79 = min(v78, v76);
        const i32 v81 = max(v79, 0);
        const i32 v83 = v81 / 64;
        const i32 v85 = v83 * 64;
        const i32 v86 = min(v85, end);
        const i32 v88 = max(v86, 0);
        for (i64 v26 = v88; v26 < end; v26 += 64) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v26), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v26), program_2);
          v_turn.next();
        }
        const bool v91 = v88 < end;
        const i32 v92 = v91 ? v88 : 0;
        for (i64 v93 = 0; v93 < v92; v93 += 64) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v93), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v93), program_2);
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
      const i32 v3 = program_1 * 128;
      const i32 end = v3 + 128;
      const i32 v64 = program_1 * 128;
      const i32 v66 = v64 + (-63);
      const i32 v68 = v66 + 64;
      const i32 v70 = max(v68, 0);
      const i32 v72 = v70 / 64;
      const i32 v74 = v72 * 64;
      const i32 v76 = end + (-1);
      const i32 v78 = v66 + 64;
      const i32 v79 = min(v78, v76);
      const i32 v81 = max(v79, 0);
      const i32 v83 = v81 / 64;
      const i32 v85 = v83 * 64;
      const i32 v86 = min(v85, end);
      const i32 v88 = max(v86, 0);
      const bool v91 = v88 < end;
      const i32 v92 = v91 ? v88 : 0;

      Vec<f32, 2> v27[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v27[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> v38[2][8];
      Vec<f32, 2> v45[2][8];
      Vec<f32, 2> v49[2][8];
      Vec<f32, 2> v57_wide[2][8];
      Vec<f32, 2> v98[2][8];
      Vec<f32, 2> v103[2][8];
      Vec<f32, 2> v107[2][8];
      wait_full(q_ring, q_turn);
      wait_full(t45_ring, t45_turn);
      Vec<bf16, 2> v57[2][8];
      const i64 v26_end = end, v26_step = 64;
      if (v88 < v26_end) {
        {
          const i32 v26 = i32(v88);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(v38, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(v49, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v38);
          k_turn.next();
          wgmma_pin(v49);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in[2];
          const f32* const t21_at = t21 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in[r] = load<1, Cache::constant>(t21_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 v10_2 = v3 + (r * 8 + g);
            const f32 v45_offset = fast::exp_offset(t21_in[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v40_2 = ((v26 + ((c * 4 + t) * 2 + v)) <= v10_2) ? v38[r][c].v[v] : (-infinity());
                v45[r][c].v[v] = fast::exp2(fmaf(v40_2, 0.12751743f, v45_offset));
              }
            }
          }
          f32 t43_in[2];
          const f32* const t43_at = t43 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in[r] = load<1, Cache::constant>(t43_at + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 v10_3 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v54_2 = ((v26 + ((c * 4 + t) * 2 + v)) <= v10_3) ? (v45[r][c].v[v] * (v49[r][c].v[v] + t43_in[r])) : 0.0f;
                v57_wide[r][c].v[v] = v54_2 * 0.088388346f;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v57[r][c] = from_f32<bf16>(v57_wide[r][c]);
            }
          }
        }
        for (i64 v26_i = v88 + v26_step; v26_i < v26_end; v26_i += v26_step) {
          const i32 v26 = i32(v26_i);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(v38, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(v49, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_block<k_block_turned>(v27, v57, k_blocks + k_turn_late.place * k_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v38);
          k_turn.next();
          wgmma_pin(v49);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in_2[2];
          const f32* const t21_at_2 = t21 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in_2[r] = load<1, Cache::constant>(t21_at_2 + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 v10_4 = v3 + (r * 8 + g);
            const f32 v45_offset_2 = fast::exp_offset(t21_in_2[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v40_3 = ((v26 + ((c * 4 + t) * 2 + v)) <= v10_4) ? v38[r][c].v[v] : (-infinity());
                v45[r][c].v[v] = fast::exp2(fmaf(v40_3, 0.12751743f, v45_offset_2));
              }
            }
          }
          f32 t43_in_2[2];
          const f32* const t43_at_2 = t43 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in_2[r] = load<1, Cache::constant>(t43_at_2 + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const i32 v10_5 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v54_3 = ((v26 + ((c * 4 + t) * 2 + v)) <= v10_5) ? (v45[r][c].v[v] * (v49[r][c].v[v] + t43_in_2[r])) : 0.0f;
                v57_wide[r][c].v[v] = v54_3 * 0.088388346f;
              }
            }
          }
          wgmma_wait<0>();
          wgmma_pin(v27);
          wgmma_pin(v57);
          release<1>(k_ring, k_turn_late.place);
          k_turn_late.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v57[r][c] = from_f32<bf16>(v57_wide[r][c]);
            }
          }
        }
        const i64 v93_end = v92, v93_step = 64;
        for (i64 v93_i = 0; v93_i < v93_end; v93_i += v93_step) {
          const i32 v93 = i32(v93_i);
          wait_full(k_ring, k_turn);
          wait_full(v_ring, v_turn);
          wgmma_block<q_block, k_block, 2>(v98, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_block<t45_block, v_block, 2>(v107, t45_blocks + t45_turn.place * t45_block::bytes, v_blocks + v_turn.place * v_block::bytes, group, false);
          wgmma_block<k_block_turned>(v27, v57, k_blocks + k_turn_late.place * k_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v98);
          k_turn.next();
          wgmma_pin(v107);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
          f32 t21_in_3[2];
          const f32* const t21_at_3 = t21 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t21_in_3[r] = load<1, Cache::constant>(t21_at_3 + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v103_offset = fast::exp_offset(t21_in_3[r]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v103[r][c].v[v] = fast::exp2(fmaf(v98[r][c].v[v], 0.12751743f, v103_offset));
              }
            }
          }
          f32 t43_in_3[2];
          const f32* const t43_at_3 = t43 + program_2 * 4096 + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            t43_in_3[r] = load<1, Cache::constant>(t43_at_3 + r * 8).v[0];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v57_wide[r][c].v[v] = (v103[r][c].v[v] * (v107[r][c].v[v] + t43_in_3[r])) * 0.088388346f;
              }
            }
          }
          wgmma_wait<0>();
          wgmma_pin(v27);
          wgmma_pin(v57);
          release<1>(k_ring, k_turn_late.place);
          k_turn_late.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v57[r][c] = from_f32<bf16>(v57_wide[r][c]);
            }
          }
        }
        wgmma_block<k_block_turned>(v27, v57, k_blocks + k_turn_late.place * k_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v27);
        wgmma_pin(v57);
        release<1>(k_ring, k_turn_late.place);
        k_turn_late.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();
      release<1>(t45_ring, t45_turn.place);
      t45_turn.next();

      bf16* const t57_at = t57 + program_2 * 524288 + v3 * 128 + g * 128 + t * 8;
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
              t57_out.v[v] = v27[r][c].v[v];
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
