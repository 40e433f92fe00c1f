// threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true fa3_pingpong=true longest_first=true; predicted 283 us
// sub_ge_le_bit_and_0: q bf16[16,16384,128], k bf16[16,16384,128], v bf16[16,16384,128] -> t40 bf16[16,16384,128]
// schedule: threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true fa3_pingpong=true longest_first=true
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
        const i32 v3 = program_1 * 128;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, v3, program_2);
        q_turn.next();
        const i32 v17 = v3 + (-1023);
        const i32 v19 = max(0, v17);
        const i32 v21 = v19 / 128;
        const i32 first_ = v21 * 128;
        const i32 v128 = program_1 * 128;
        const i32 v130 = v128 + (-896);
        const i32 v132 = v130 + 127;
        const i32 v133 = v132 - first_;
        const i32 v135 = max(v133, 0);
        const i32 v137 = v135 / 128;
        const i32 v139 = v137 * 128;
        const i32 v140 = first_ + v139;
        const i32 end = v3 + 128;
        const i32 v141 = min(v140, end);
        const i32 v100 = program_1 * 128;
        const i32 v102 = v100 + (-127);
        const i32 v116 = v102 + 128;
        const i32 v114 = end + (-1);
        const i32 v117 = min(v116, v114);
        const i32 v118 = v117 - first_;
        const i32 v120 = max(v118, 0);
        const i32 v122 = v120 / 128;
        const i32 v124 = v122 * 128;
        const i32 v125 = first_ + v124;
        const i32 v142 = min(v125, end);
        const i32 v143 = max(v142, v141);
        const i32 v147 = v143 - v141;
        const i32 v149 = max(v147, 0);
        const i32 v150 = end - v149;
        for (i64 v27 = first_; v27 < v150; v27 += 128) {
          const bool v152 = saturate_i32(v27) < v141;
          const i32 v153 = v152 ? 0 : v149;
          const i32 v154 = i32(v27 + i64(v153));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, v154, program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, v154, program_2);
          v_turn.next();
        }
        const bool v155 = first_ < v150;
        const i32 v156 = v155 ? v143 : v141;
        for (i64 v157 = v141; v157 < v156; v157 += 128) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v157), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v157), program_2);
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
      const i32 v3 = program_1 * 128;
      const i32 v17 = v3 + (-1023);
      const i32 v19 = max(0, v17);
      const i32 v21 = v19 / 128;
      const i32 first_ = v21 * 128;
      const i32 end = v3 + 128;
      const i32 v100 = program_1 * 128;
      const i32 v102 = v100 + (-127);
      const i32 v104 = v102 + 128;
      const i32 v105 = v104 - first_;
      const i32 v107 = max(v105, 0);
      const i32 v109 = v107 / 128;
      const i32 v111 = v109 * 128;
      const i32 v112 = first_ + v111;
      const i32 v114 = end + (-1);
      const i32 v116 = v102 + 128;
      const i32 v117 = min(v116, v114);
      const i32 v118 = v117 - first_;
      const i32 v120 = max(v118, 0);
      const i32 v122 = v120 / 128;
      const i32 v124 = v122 * 128;
      const i32 v125 = first_ + v124;
      const i32 v128 = program_1 * 128;
      const i32 v130 = v128 + (-896);
      const i32 v132 = v130 + 127;
      const i32 v133 = v132 - first_;
      const i32 v135 = max(v133, 0);
      const i32 v137 = v135 / 128;
      const i32 v139 = v137 * 128;
      const i32 v140 = first_ + v139;
      const i32 v141 = min(v140, end);
      const i32 v142 = min(v125, end);
      const i32 v143 = max(v142, v141);
      const i32 v147 = v143 - v141;
      const i32 v149 = max(v147, 0);
      const i32 v150 = end - v149;
      const bool v155 = first_ < v150;
      const i32 v156 = v155 ? v143 : v141;

      f32 v28[2];
      f32 v29[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        v28[r] = -infinity();
        v29[r] = 0.0f;
      }

      Vec<f32, 2> v30[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v30[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> v52[2][16];
      f32 v57[2];
      Vec<f32, 2> v54[2][16];
      f32 v77[2];
      Vec<f32, 2> v82_wide[2][16];
      f32 v79[2];
      Vec<f32, 2> v164[2][16];
      f32 v167[2];
      f32 v187[2];
      f32 v189[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> v82[2][16];
      const i64 v27_end = v150, v27_step = 128;
      if (first_ < v27_end) {
        {
          const i32 v27 = i32(first_);
          const bool v152 = v27 < v141;
          const i32 v153 = v152 ? 0 : v149;
          const i32 v154 = v27 + v153;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v52, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v52);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v57[r] = Max::identity<f32>();
            const i32 v33_2 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const i32 v43_2 = v33_2 + ((v154 + ((c * 4 + t) * 2 + v)) * (-1));
                const f32 v54_2 = ((v43_2 >= 0) && (v43_2 <= 1023)) ? v52[r][c].v[v] : (-infinity());
                v57[r] = max(v57[r], v54_2);
                v54[r][c].v[v] = v54_2;
              }
            }
          }
          reduce_lanes<Max, 4>(v57);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v57[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v77[r] = Sum::identity<f32>();
            const f32 v59_2 = max(v28[r], v57[r]);
            const bool v61_2 = v59_2 == (-infinity());
            const f32 v63_2 = v61_2 ? 0.0f : v59_2;
            const f32 v73_2 = max(v63_2, -3.4028235e+38f);
            const f32 v76_offset = fast::exp_offset(v73_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v76_2 = fast::exp2(fmaf(v54[r][c].v[v], 0.12751743f, v76_offset));
                v77[r] += v76_2;
                v82_wide[r][c].v[v] = v76_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v77);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v59_3 = max(v28[r], v57[r]);
            const f32 v68_2 = max((v59_3 == (-infinity())) ? 0.0f : v59_3, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v79[r] = (v29[r] * fast::exp(-v68_2)) + v77[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v59_4 = max(v28[r], v57[r]);
            const bool v61_3 = v59_4 == (-infinity());
            const f32 v63_3 = v61_3 ? 0.0f : v59_4;
            const f32 v67_2 = max(v63_3, -3.4028235e+38f);
            const f32 v65_2 = max(v28[r], -3.4028235e+38f);
            const f32 v68_3 = v67_2 - v65_2;
            const f32 v70_2 = fast::exp(-v68_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v70_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v82[r][c] = from_f32<bf16>(v82_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v57[r]);
          }
          f32 v79_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v79_old[r] = v79[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v79_old[r];
          }
        }
        for (i64 v27_i = first_ + v27_step; v27_i < v27_end; v27_i += v27_step) {
          const i32 v27 = i32(v27_i);
          const bool v152 = v27 < v141;
          const i32 v153 = v152 ? 0 : v149;
          const i32 v154 = v27 + v153;
          wait_full(k_ring, k_turn);
          pingpong_wait(group);
          wgmma_block<q_block, k_block, 2>(v52, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v30, v82, v_blocks + v_turn.place * v_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(v52);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v57[r] = Max::identity<f32>();
            const i32 v33_3 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const i32 v43_3 = v33_3 + ((v154 + ((c * 4 + t) * 2 + v)) * (-1));
                const f32 v54_3 = ((v43_3 >= 0) && (v43_3 <= 1023)) ? v52[r][c].v[v] : (-infinity());
                v57[r] = max(v57[r], v54_3);
                v54[r][c].v[v] = v54_3;
              }
            }
          }
          reduce_lanes<Max, 4>(v57);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v57[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v77[r] = Sum::identity<f32>();
            const f32 v59_5 = max(v28[r], v57[r]);
            const bool v61_4 = v59_5 == (-infinity());
            const f32 v63_4 = v61_4 ? 0.0f : v59_5;
            const f32 v73_3 = max(v63_4, -3.4028235e+38f);
            const f32 v76_offset_2 = fast::exp_offset(v73_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v76_3 = fast::exp2(fmaf(v54[r][c].v[v], 0.12751743f, v76_offset_2));
                v77[r] += v76_3;
                v82_wide[r][c].v[v] = v76_3;
              }
            }
          }
          reduce_lanes<Sum, 4>(v77);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v59_6 = max(v28[r], v57[r]);
            const f32 v68_4 = max((v59_6 == (-infinity())) ? 0.0f : v59_6, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v79[r] = (v29[r] * fast::exp(-v68_4)) + v77[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v30);
          wgmma_pin(v82);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v59_7 = max(v28[r], v57[r]);
            const bool v61_5 = v59_7 == (-infinity());
            const f32 v63_5 = v61_5 ? 0.0f : v59_7;
            const f32 v67_3 = max(v63_5, -3.4028235e+38f);
            const f32 v65_3 = max(v28[r], -3.4028235e+38f);
            const f32 v68_5 = v67_3 - v65_3;
            const f32 v70_3 = fast::exp(-v68_5);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v70_3;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v82[r][c] = from_f32<bf16>(v82_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v57[r]);
          }
          f32 v79_old_2[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v79_old_2[r] = v79[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v79_old_2[r];
          }
        }
        const i64 v157_end = v156, v157_step = 128;
        for (i64 v157_i = v141; v157_i < v157_end; v157_i += v157_step) {
          const i32 v157 = i32(v157_i);
          wait_full(k_ring, k_turn);
          pingpong_wait(group);
          wgmma_block<q_block, k_block, 2>(v164, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v30, v82, v_blocks + v_turn.place * v_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(v164);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v167[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v167[r] = max(v167[r], v164[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(v167);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v167[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v187[r] = Sum::identity<f32>();
            const f32 v169_2 = max(v28[r], v167[r]);
            const bool v171_2 = v169_2 == (-infinity());
            const f32 v173_2 = v171_2 ? 0.0f : v169_2;
            const f32 v183_2 = max(v173_2, -3.4028235e+38f);
            const f32 v186_offset = fast::exp_offset(v183_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v186_2 = fast::exp2(fmaf(v164[r][c].v[v], 0.12751743f, v186_offset));
                v187[r] += v186_2;
                v82_wide[r][c].v[v] = v186_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v187);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v169_3 = max(v28[r], v167[r]);
            const f32 v178_2 = max((v169_3 == (-infinity())) ? 0.0f : v169_3, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v189[r] = (v29[r] * fast::exp(-v178_2)) + v187[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v30);
          wgmma_pin(v82);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v169_4 = max(v28[r], v167[r]);
            const bool v171_3 = v169_4 == (-infinity());
            const f32 v173_3 = v171_3 ? 0.0f : v169_4;
            const f32 v177_2 = max(v173_3, -3.4028235e+38f);
            const f32 v175_2 = max(v28[r], -3.4028235e+38f);
            const f32 v178_3 = v177_2 - v175_2;
            const f32 v180_2 = fast::exp(-v178_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v180_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v82[r][c] = from_f32<bf16>(v82_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v167[r]);
          }
          f32 v189_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v189_old[r] = v189[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v189_old[r];
          }
        }
        wait_full(v_ring, v_turn);
        wgmma_block<v_block>(v30, v82, v_blocks + v_turn.place * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v30);
        wgmma_pin(v82);
        release<1>(v_ring, v_turn.place);
        v_turn.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();

      bf16* const t40_at = t40 + program_2 * 2097152 + v3 * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool v90_2 = v28[r] == (-infinity());
        const f32 v93_2 = v90_2 ? 1.0f : v29[r];
        const f32 v94_2 = fast::reciprocal(v93_2);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t40_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t40_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t40_out.v[v] = v30[r][c].v[v] * v94_2;
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
