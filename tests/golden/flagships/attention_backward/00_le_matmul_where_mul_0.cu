// threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true; predicted 135 us
// le_matmul_where_mul_0: q bf16[16,4096,128], k bf16[16,4096,128], v bf16[16,4096,128] -> t21 f32[16,4096], t29 f32[16,4096,128], t31 bool[16,4096], t33 f32[16,4096]
// schedule: threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true
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

namespace tw {

extern "C" __global__ void __launch_bounds__(384, 1) le_matmul_where_mul_0(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v_, f32* __restrict__ t21, f32* __restrict__ t29, bool* __restrict__ t31, f32* __restrict__ t33, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
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
      for (i32 wave = 0, program; (program = serpentine(wave)) < 512; ++wave) {
        const i32 program_2 = program % 16;
        const i32 program_1 = 31 - program / 16;
        const i32 v3 = program_1 * 128;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, v3, program_2);
        q_turn.next();
        const i32 end = v3 + 128;
        const i32 v86 = program_1 * 128;
        const i32 v88 = v86 + (-127);
        const i32 v100 = v88 + 128;
        const i32 v98 = end + (-1);
        const i32 v101 = min(v100, v98);
        const i32 v103 = max(v101, 0);
        const i32 v105 = v103 / 128;
        const i32 v107 = v105 * 128;
        const i32 v108 = min(v107, end);
        const i32 v110 = max(v108, 0);
        for (i64 v22 = v110; v22 < end; v22 += 128) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v22), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v22), program_2);
          v_turn.next();
        }
        const bool v115 = v110 < end;
        const i32 v116 = v115 ? v110 : 0;
        for (i64 v117 = 0; v117 < v116; v117 += 128) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v117), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v117), program_2);
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
      const i32 v86 = program_1 * 128;
      const i32 v88 = v86 + (-127);
      const i32 v90 = v88 + 128;
      const i32 v92 = max(v90, 0);
      const i32 v94 = v92 / 128;
      const i32 v96 = v94 * 128;
      const i32 v98 = end + (-1);
      const i32 v100 = v88 + 128;
      const i32 v101 = min(v100, v98);
      const i32 v103 = max(v101, 0);
      const i32 v105 = v103 / 128;
      const i32 v107 = v105 * 128;
      const i32 v108 = min(v107, end);
      const i32 v110 = max(v108, 0);
      const bool v115 = v110 < end;
      const i32 v116 = v115 ? v110 : 0;

      f32 v23[2];
      f32 v24[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        v23[r] = -infinity();
        v24[r] = 0.0f;
      }

      Vec<f32, 2> v25[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v25[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> v36[2][16];
      f32 v41[2];
      f32 v61[2];
      Vec<f32, 2> v66_wide[2][16];
      f32 v63[2];
      Vec<f32, 2> v124[2][16];
      f32 v127[2];
      f32 v147[2];
      f32 v149[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> v66[2][16];
      const i64 v22_end = end, v22_step = 128;
      if (v110 < v22_end) {
        {
          const i32 v22 = i32(v110);
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v36, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v36);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v41[r] = Max::identity<f32>();
            const i32 v9_2 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v38_2 = ((v22 + ((c * 4 + t) * 2 + v)) <= v9_2) ? v36[r][c].v[v] : (-infinity());
                v41[r] = max(v41[r], v38_2);
              }
            }
          }
          reduce_lanes<Max, 4>(v41);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v41[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] = Sum::identity<f32>();
            const i32 v9_3 = v3 + (r * 8 + g);
            const f32 v43_2 = max(v23[r], v41[r]);
            const bool v45_2 = v43_2 == (-infinity());
            const f32 v47_2 = v45_2 ? 0.0f : v43_2;
            const f32 v57_2 = max(v47_2, -3.4028235e+38f);
            const f32 v60_offset = fast::exp_offset(v57_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v38_3 = ((v22 + ((c * 4 + t) * 2 + v)) <= v9_3) ? v36[r][c].v[v] : (-infinity());
                const f32 v60_2 = fast::exp2(fmaf(v38_3, 0.12751743f, v60_offset));
                v61[r] += v60_2;
                v66_wide[r][c].v[v] = v60_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v61);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v43_3 = max(v23[r], v41[r]);
            const f32 v52_2 = max((v43_3 == (-infinity())) ? 0.0f : v43_3, -3.4028235e+38f) - max(v23[r], -3.4028235e+38f);
            v63[r] = (v24[r] * exp(-v52_2)) + v61[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v43_4 = max(v23[r], v41[r]);
            const bool v45_3 = v43_4 == (-infinity());
            const f32 v47_3 = v45_3 ? 0.0f : v43_4;
            const f32 v51_2 = max(v47_3, -3.4028235e+38f);
            const f32 v49_2 = max(v23[r], -3.4028235e+38f);
            const f32 v52_3 = v51_2 - v49_2;
            const f32 v54_2 = exp(-v52_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v25[r][c].v[v] = v25[r][c].v[v] * v54_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v66[r][c] = from_f32<bf16>(v66_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v23[r] = max(v23[r], v41[r]);
          }
          f32 v63_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v63_old[r] = v63[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v24[r] = v63_old[r];
          }
        }
        for (i64 v22_i = v110 + v22_step; v22_i < v22_end; v22_i += v22_step) {
          const i32 v22 = i32(v22_i);
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v36, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v25, v66, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v36);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v41[r] = Max::identity<f32>();
            const i32 v9_4 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v38_4 = ((v22 + ((c * 4 + t) * 2 + v)) <= v9_4) ? v36[r][c].v[v] : (-infinity());
                v41[r] = max(v41[r], v38_4);
              }
            }
          }
          reduce_lanes<Max, 4>(v41);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v41[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] = Sum::identity<f32>();
            const i32 v9_5 = v3 + (r * 8 + g);
            const f32 v43_5 = max(v23[r], v41[r]);
            const bool v45_4 = v43_5 == (-infinity());
            const f32 v47_4 = v45_4 ? 0.0f : v43_5;
            const f32 v57_3 = max(v47_4, -3.4028235e+38f);
            const f32 v60_offset_2 = fast::exp_offset(v57_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v38_5 = ((v22 + ((c * 4 + t) * 2 + v)) <= v9_5) ? v36[r][c].v[v] : (-infinity());
                const f32 v60_3 = fast::exp2(fmaf(v38_5, 0.12751743f, v60_offset_2));
                v61[r] += v60_3;
                v66_wide[r][c].v[v] = v60_3;
              }
            }
          }
          reduce_lanes<Sum, 4>(v61);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v43_6 = max(v23[r], v41[r]);
            const f32 v52_4 = max((v43_6 == (-infinity())) ? 0.0f : v43_6, -3.4028235e+38f) - max(v23[r], -3.4028235e+38f);
            v63[r] = (v24[r] * exp(-v52_4)) + v61[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v25);
          wgmma_pin(v66);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v43_7 = max(v23[r], v41[r]);
            const bool v45_5 = v43_7 == (-infinity());
            const f32 v47_5 = v45_5 ? 0.0f : v43_7;
            const f32 v51_3 = max(v47_5, -3.4028235e+38f);
            const f32 v49_3 = max(v23[r], -3.4028235e+38f);
            const f32 v52_5 = v51_3 - v49_3;
            const f32 v54_3 = exp(-v52_5);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v25[r][c].v[v] = v25[r][c].v[v] * v54_3;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v66[r][c] = from_f32<bf16>(v66_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v23[r] = max(v23[r], v41[r]);
          }
          f32 v63_old_2[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v63_old_2[r] = v63[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v24[r] = v63_old_2[r];
          }
        }
        const i64 v117_end = v116, v117_step = 128;
        for (i64 v117_i = 0; v117_i < v117_end; v117_i += v117_step) {
          const i32 v117 = i32(v117_i);
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v124, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v25, v66, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v124);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v127[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v127[r] = max(v127[r], v124[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(v127);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v127[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v147[r] = Sum::identity<f32>();
            const f32 v129_2 = max(v23[r], v127[r]);
            const bool v131_2 = v129_2 == (-infinity());
            const f32 v133_2 = v131_2 ? 0.0f : v129_2;
            const f32 v143_2 = max(v133_2, -3.4028235e+38f);
            const f32 v146_offset = fast::exp_offset(v143_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v146_2 = fast::exp2(fmaf(v124[r][c].v[v], 0.12751743f, v146_offset));
                v147[r] += v146_2;
                v66_wide[r][c].v[v] = v146_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v147);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v129_3 = max(v23[r], v127[r]);
            const f32 v138_2 = max((v129_3 == (-infinity())) ? 0.0f : v129_3, -3.4028235e+38f) - max(v23[r], -3.4028235e+38f);
            v149[r] = (v24[r] * exp(-v138_2)) + v147[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v25);
          wgmma_pin(v66);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v129_4 = max(v23[r], v127[r]);
            const bool v131_3 = v129_4 == (-infinity());
            const f32 v133_3 = v131_3 ? 0.0f : v129_4;
            const f32 v137_2 = max(v133_3, -3.4028235e+38f);
            const f32 v135_2 = max(v23[r], -3.4028235e+38f);
            const f32 v138_3 = v137_2 - v135_2;
            const f32 v140_2 = exp(-v138_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v25[r][c].v[v] = v25[r][c].v[v] * v140_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v66[r][c] = from_f32<bf16>(v66_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v23[r] = max(v23[r], v127[r]);
          }
          f32 v149_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v149_old[r] = v149[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v24[r] = v149_old[r];
          }
        }
        wait_full(v_ring, v_turn);
        wgmma_block<v_block>(v25, v66, v_blocks + v_turn.place * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v25);
        wgmma_pin(v66);
        release<1>(v_ring, v_turn.place);
        v_turn.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();

      f32* const t21_at = t21 + program_2 * 4096 + v3 + g;
      bool* const t31_at = t31 + program_2 * 4096 + v3 + g;
      f32* const t33_at = t33 + program_2 * 4096 + v3 + g;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool v78_2 = v23[r] == (-infinity());
        if (t == 0) store(t21_at + r * 8, Vec<f32, 1>{{f32(max(v23[r], -3.4028235e+38f))}});
        if (t == 0) store(t31_at + r * 8, Vec<bool, 1>{{bool(v78_2)}});
        if (t == 0) store(t33_at + r * 8, Vec<f32, 1>{{f32(v78_2 ? 1.0f : v24[r])}});
      }

      f32* const t29_at = t29 + program_2 * 524288 + v3 * 128 + g * 128 + t * 2;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
          store(t29_at + r * 1024 + c * 8, v25[r][c]);
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
