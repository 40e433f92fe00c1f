// threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true; predicted 2e+03 us
// take_take_eq_le_0: ids i64[16384], q bf16[16,16384,128], blocks i64[4,128], k bf16[16,16384,128], v bf16[16,16384,128] -> t43 bf16[16,16384,128]
// schedule: threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true longest_first=true
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

extern "C" __global__ void __launch_bounds__(384, 1) take_take_eq_le_0(const i64* __restrict__ ids, const bf16* __restrict__ q, const i64* __restrict__ blocks, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ t43, const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map) {
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
        const i32 v21 = v3 / 128;
        const i64 v23 = load<1, Cache::constant>(blocks + v21).v[0];
        const i64 v25 = min(v23, i64(128));
        const i32 v27 = i32(max(v25, i64(0)));
        const i32 first_ = v27 * 128;
        const i32 v41 = v3 / 128;
        const i64 v43 = load<1, Cache::constant>(blocks + 256 + v41).v[0];
        const i64 v45 = min(v43, i64(128));
        const i32 v47 = i32(max(v45, i64(0)));
        const i32 v162 = i32(max(i64(v47), -4398046511104ll));
        const i32 v164 = i32(min(i64(v162), 4398046511104ll));
        const i32 v166 = v164 * 128;
        const i32 v168 = v166 + 127;
        const i32 v169 = v168 - first_;
        const i32 v171 = max(v169, 0);
        const i32 v173 = v171 / 128;
        const i32 v175 = v173 * 128;
        const i32 v176 = first_ + v175;
        const i32 v31 = v3 / 128;
        const i64 v33 = load<1, Cache::constant>(blocks + 128 + v31).v[0];
        const i64 v35 = min(v33, i64(128));
        const i32 v37 = i32(max(v35, i64(0)));
        const i32 v39 = v37 * 128;
        const i32 v61 = v3 + 128;
        const i32 end = min(v39, v61);
        const i32 v177 = min(v176, end);
        const i32 v51 = v3 / 128;
        const i64 v53 = load<1, Cache::constant>(blocks + 384 + v51).v[0];
        const i64 v55 = min(v53, i64(128));
        const i32 v57 = i32(max(v55, i64(0)));
        const i32 v131 = i32(max(i64(v57), -4398046511104ll));
        const i32 v133 = i32(min(i64(v131), 4398046511104ll));
        const i32 v135 = v133 * 128;
        const i32 v137 = v135 + (-128);
        const i32 v151 = v137 + 128;
        const i32 v149 = end + (-1);
        const i32 v152 = min(v151, v149);
        const i32 v153 = v152 - first_;
        const i32 v155 = max(v153, 0);
        const i32 v157 = v155 / 128;
        const i32 v159 = v157 * 128;
        const i32 v160 = first_ + v159;
        const i32 v178 = min(v160, end);
        const i32 v179 = max(v178, v177);
        const i32 v183 = v179 - v177;
        const i32 v185 = max(v183, 0);
        const i32 v186 = end - v185;
        for (i64 v64 = first_; v64 < v186; v64 += 128) {
          const bool v188 = saturate_i32(v64) < v177;
          const i32 v189 = v188 ? 0 : v185;
          const i32 v190 = i32(v64 + i64(v189));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, v190, program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, v190, program_2);
          v_turn.next();
        }
        const bool v191 = first_ < v186;
        const i32 v192 = v191 ? v179 : v177;
        for (i64 v193 = v177; v193 < v192; v193 += 128) {
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, i32(v193), program_2);
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, i32(v193), program_2);
          v_turn.next();
        }
      }
    }
  } else {
    registers_up<240>();
    const int group = warpgroup();
    for (i32 wave = 0, program; (program = serpentine(wave)) < 2048; ++wave) {
      const i32 program_1 = 127 - program / 16;
      const i32 program_2 = program % 16;
      const i32 v3 = program_1 * 128;
      const i32 v21 = v3 / 128;
      const i64 v23 = load<1, Cache::constant>(blocks + v21).v[0];
      const i64 v25 = min(v23, i64(128));
      const i32 v27 = i32(max(v25, i64(0)));
      const i32 first_ = v27 * 128;
      const i32 v31 = v3 / 128;
      const i64 v33 = load<1, Cache::constant>(blocks + 128 + v31).v[0];
      const i64 v35 = min(v33, i64(128));
      const i32 v37 = i32(max(v35, i64(0)));
      const i32 v39 = v37 * 128;
      const i32 v41 = v3 / 128;
      const i64 v43 = load<1, Cache::constant>(blocks + 256 + v41).v[0];
      const i64 v45 = min(v43, i64(128));
      const i32 v47 = i32(max(v45, i64(0)));
      const i32 v49 = v47 * 128;
      const i32 v51 = v3 / 128;
      const i64 v53 = load<1, Cache::constant>(blocks + 384 + v51).v[0];
      const i64 v55 = min(v53, i64(128));
      const i32 v57 = i32(max(v55, i64(0)));
      const i32 v59 = v57 * 128;
      const i32 v61 = v3 + 128;
      const i32 end = min(v39, v61);
      const i32 v131 = i32(max(i64(v57), -4398046511104ll));
      const i32 v133 = i32(min(i64(v131), 4398046511104ll));
      const i32 v135 = v133 * 128;
      const i32 v137 = v135 + (-128);
      const i32 v139 = v137 + 128;
      const i32 v140 = v139 - first_;
      const i32 v142 = max(v140, 0);
      const i32 v144 = v142 / 128;
      const i32 v146 = v144 * 128;
      const i32 v147 = first_ + v146;
      const i32 v149 = end + (-1);
      const i32 v151 = v137 + 128;
      const i32 v152 = min(v151, v149);
      const i32 v153 = v152 - first_;
      const i32 v155 = max(v153, 0);
      const i32 v157 = v155 / 128;
      const i32 v159 = v157 * 128;
      const i32 v160 = first_ + v159;
      const i32 v162 = i32(max(i64(v47), -4398046511104ll));
      const i32 v164 = i32(min(i64(v162), 4398046511104ll));
      const i32 v166 = v164 * 128;
      const i32 v168 = v166 + 127;
      const i32 v169 = v168 - first_;
      const i32 v171 = max(v169, 0);
      const i32 v173 = v171 / 128;
      const i32 v175 = v173 * 128;
      const i32 v176 = first_ + v175;
      const i32 v177 = min(v176, end);
      const i32 v178 = min(v160, end);
      const i32 v179 = max(v178, v177);
      const i32 v183 = v179 - v177;
      const i32 v185 = max(v183, 0);
      const i32 v186 = end - v185;
      const bool v191 = first_ < v186;
      const i32 v192 = v191 ? v179 : v177;

      f32 v65[2];
      f32 v66[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        v65[r] = -infinity();
        v66[r] = 0.0f;
      }

      Vec<f32, 2> v67[2][16];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 16; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v67[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> v84[2][16];
      f32 v89[2];
      f32 v109[2];
      Vec<f32, 2> v114_wide[2][16];
      f32 v111[2];
      Vec<f32, 2> v200[2][16];
      f32 v203[2];
      f32 v223[2];
      f32 v225[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> v114[2][16];
      const i64 v64_end = v186, v64_step = 128;
      if (first_ < v64_end) {
        {
          const i32 v64 = i32(first_);
          const bool v188 = v64 < v177;
          const i32 v189 = v188 ? 0 : v185;
          const i32 v190 = v64 + v189;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v84, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v84);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
          i64 ids_in[2];
          const i64* const ids_at = ids + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            ids_in[r] = load<1, Cache::constant>(ids_at + r * 8).v[0];
          }
          Vec<i64, 2> ids_in_2[16];
          const i64* const ids_at_2 = ids + v190 + t * 2;
#pragma unroll
          for (int c = 0; c < 16; ++c) {
            ids_in_2[c] = load<2, Cache::constant>(ids_at_2 + c * 8);
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v89[r] = Max::identity<f32>();
            const i32 v9_2 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const bool v80_2 = (ids_in[r] == ids_in_2[c].v[v]) && ((v190 + ((c * 4 + t) * 2 + v)) <= v9_2);
                v89[r] = max(v89[r], v80_2 ? v84[r][c].v[v] : (-infinity()));
              }
            }
          }
          reduce_lanes<Max, 4>(v89);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v89[r] *= 0.088388346f;
          }
          i64 ids_in_3[2];
          const i64* const ids_at_3 = ids + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            ids_in_3[r] = load<1, Cache::constant>(ids_at_3 + r * 8).v[0];
          }
          Vec<i64, 2> ids_in_4[16];
          const i64* const ids_at_4 = ids + v190 + t * 2;
#pragma unroll
          for (int c = 0; c < 16; ++c) {
            ids_in_4[c] = load<2, Cache::constant>(ids_at_4 + c * 8);
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v109[r] = Sum::identity<f32>();
            const i32 v9_3 = v3 + (r * 8 + g);
            const f32 v91_2 = max(v65[r], v89[r]);
            const bool v93_2 = v91_2 == (-infinity());
            const f32 v95_2 = v93_2 ? 0.0f : v91_2;
            const f32 v105_2 = max(v95_2, -3.4028235e+38f);
            const f32 v108_offset = fast::exp_offset(v105_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const bool v80_3 = (ids_in_3[r] == ids_in_4[c].v[v]) && ((v190 + ((c * 4 + t) * 2 + v)) <= v9_3);
                const f32 v108_2 = fast::exp2(fmaf(v80_3 ? v84[r][c].v[v] : (-infinity()), 0.12751743f, v108_offset));
                v109[r] += v108_2;
                v114_wide[r][c].v[v] = v108_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v109);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v91_3 = max(v65[r], v89[r]);
            const f32 v100_2 = max((v91_3 == (-infinity())) ? 0.0f : v91_3, -3.4028235e+38f) - max(v65[r], -3.4028235e+38f);
            v111[r] = (v66[r] * fast::exp(-v100_2)) + v109[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v91_4 = max(v65[r], v89[r]);
            const bool v93_3 = v91_4 == (-infinity());
            const f32 v95_3 = v93_3 ? 0.0f : v91_4;
            const f32 v99_2 = max(v95_3, -3.4028235e+38f);
            const f32 v97_2 = max(v65[r], -3.4028235e+38f);
            const f32 v100_3 = v99_2 - v97_2;
            const f32 v102_2 = fast::exp(-v100_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v67[r][c].v[v] = v67[r][c].v[v] * v102_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v114[r][c] = from_f32<bf16>(v114_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v65[r] = max(v65[r], v89[r]);
          }
          f32 v111_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v111_old[r] = v111[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v66[r] = v111_old[r];
          }
        }
        for (i64 v64_i = first_ + v64_step; v64_i < v64_end; v64_i += v64_step) {
          const i32 v64 = i32(v64_i);
          const bool v188 = v64 < v177;
          const i32 v189 = v188 ? 0 : v185;
          const i32 v190 = v64 + v189;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v84, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v67, v114, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v84);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
          i64 ids_in_5[2];
          const i64* const ids_at_5 = ids + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            ids_in_5[r] = load<1, Cache::constant>(ids_at_5 + r * 8).v[0];
          }
          Vec<i64, 2> ids_in_6[16];
          const i64* const ids_at_6 = ids + v190 + t * 2;
#pragma unroll
          for (int c = 0; c < 16; ++c) {
            ids_in_6[c] = load<2, Cache::constant>(ids_at_6 + c * 8);
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v89[r] = Max::identity<f32>();
            const i32 v9_4 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const bool v80_4 = (ids_in_5[r] == ids_in_6[c].v[v]) && ((v190 + ((c * 4 + t) * 2 + v)) <= v9_4);
                v89[r] = max(v89[r], v80_4 ? v84[r][c].v[v] : (-infinity()));
              }
            }
          }
          reduce_lanes<Max, 4>(v89);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v89[r] *= 0.088388346f;
          }
          i64 ids_in_7[2];
          const i64* const ids_at_7 = ids + v3 + g;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            ids_in_7[r] = load<1, Cache::constant>(ids_at_7 + r * 8).v[0];
          }
          Vec<i64, 2> ids_in_8[16];
          const i64* const ids_at_8 = ids + v190 + t * 2;
#pragma unroll
          for (int c = 0; c < 16; ++c) {
            ids_in_8[c] = load<2, Cache::constant>(ids_at_8 + c * 8);
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v109[r] = Sum::identity<f32>();
            const i32 v9_5 = v3 + (r * 8 + g);
            const f32 v91_5 = max(v65[r], v89[r]);
            const bool v93_4 = v91_5 == (-infinity());
            const f32 v95_4 = v93_4 ? 0.0f : v91_5;
            const f32 v105_3 = max(v95_4, -3.4028235e+38f);
            const f32 v108_offset_2 = fast::exp_offset(v105_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const bool v80_5 = (ids_in_7[r] == ids_in_8[c].v[v]) && ((v190 + ((c * 4 + t) * 2 + v)) <= v9_5);
                const f32 v108_3 = fast::exp2(fmaf(v80_5 ? v84[r][c].v[v] : (-infinity()), 0.12751743f, v108_offset_2));
                v109[r] += v108_3;
                v114_wide[r][c].v[v] = v108_3;
              }
            }
          }
          reduce_lanes<Sum, 4>(v109);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v91_6 = max(v65[r], v89[r]);
            const f32 v100_4 = max((v91_6 == (-infinity())) ? 0.0f : v91_6, -3.4028235e+38f) - max(v65[r], -3.4028235e+38f);
            v111[r] = (v66[r] * fast::exp(-v100_4)) + v109[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v67);
          wgmma_pin(v114);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v91_7 = max(v65[r], v89[r]);
            const bool v93_5 = v91_7 == (-infinity());
            const f32 v95_5 = v93_5 ? 0.0f : v91_7;
            const f32 v99_3 = max(v95_5, -3.4028235e+38f);
            const f32 v97_3 = max(v65[r], -3.4028235e+38f);
            const f32 v100_5 = v99_3 - v97_3;
            const f32 v102_3 = fast::exp(-v100_5);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v67[r][c].v[v] = v67[r][c].v[v] * v102_3;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v114[r][c] = from_f32<bf16>(v114_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v65[r] = max(v65[r], v89[r]);
          }
          f32 v111_old_2[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v111_old_2[r] = v111[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v66[r] = v111_old_2[r];
          }
        }
        const i64 v193_end = v192, v193_step = 128;
        for (i64 v193_i = v177; v193_i < v193_end; v193_i += v193_step) {
          const i32 v193 = i32(v193_i);
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 2>(v200, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v67, v114, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v200);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v203[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v203[r] = max(v203[r], v200[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(v203);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v203[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v223[r] = Sum::identity<f32>();
            const f32 v205_2 = max(v65[r], v203[r]);
            const bool v207_2 = v205_2 == (-infinity());
            const f32 v209_2 = v207_2 ? 0.0f : v205_2;
            const f32 v219_2 = max(v209_2, -3.4028235e+38f);
            const f32 v222_offset = fast::exp_offset(v219_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v222_2 = fast::exp2(fmaf(v200[r][c].v[v], 0.12751743f, v222_offset));
                v223[r] += v222_2;
                v114_wide[r][c].v[v] = v222_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v223);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v205_3 = max(v65[r], v203[r]);
            const f32 v214_2 = max((v205_3 == (-infinity())) ? 0.0f : v205_3, -3.4028235e+38f) - max(v65[r], -3.4028235e+38f);
            v225[r] = (v66[r] * fast::exp(-v214_2)) + v223[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v67);
          wgmma_pin(v114);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v205_4 = max(v65[r], v203[r]);
            const bool v207_3 = v205_4 == (-infinity());
            const f32 v209_3 = v207_3 ? 0.0f : v205_4;
            const f32 v213_2 = max(v209_3, -3.4028235e+38f);
            const f32 v211_2 = max(v65[r], -3.4028235e+38f);
            const f32 v214_3 = v213_2 - v211_2;
            const f32 v216_2 = fast::exp(-v214_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v67[r][c].v[v] = v67[r][c].v[v] * v216_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v114[r][c] = from_f32<bf16>(v114_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v65[r] = max(v65[r], v203[r]);
          }
          f32 v225_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v225_old[r] = v225[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v66[r] = v225_old[r];
          }
        }
        wait_full(v_ring, v_turn);
        wgmma_block<v_block>(v67, v114, v_blocks + v_turn.place * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v67);
        wgmma_pin(v114);
        release<1>(v_ring, v_turn.place);
        v_turn.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();

      bf16* const t43_at = t43 + program_2 * 2097152 + v3 * 128 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool v122_2 = v65[r] == (-infinity());
        const f32 v125_2 = v122_2 ? 1.0f : v66[r];
        const f32 v126_2 = fast::reciprocal(v125_2);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t43_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t43_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t43_out.v[v] = v67[r][c].v[v] * v126_2;
            }
            t43_parts[part] = from_f32<bf16>(t43_out);
          }
          const int c = wide;
          store(t43_at + r * 1024 + c * 32, across_quad(t43_parts));
        }
      }
    }
  }
  close_pipeline<1>();
}

}  // namespace tw
