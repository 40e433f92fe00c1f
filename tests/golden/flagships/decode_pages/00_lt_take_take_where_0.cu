// threads=128 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true; predicted 34.6 us
// lt_take_take_where_0: lengths i64[16], q bf16[16,8,8,128], table i64[2048], k bf16[2048,8,64,128], v bf16[2048,8,64,128] -> t52 bf16[16,8,8,128]
// schedule: threads=128 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true
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
        const i32 v6 = program_2 / 8;
        const i32 v4 = program_2 % 8;
        Barrier& q_full = refill(q_ring, q_turn, q_block::bytes);
        tma_load_panels<2, q_block::panel_bytes, 64>(q_blocks + q_turn.place * q_block::bytes, q_map, q_full, 0, 0, v4, v6);
        q_turn.next();
        const i64 v9 = load<1, Cache::constant>(lengths + v6).v[0];
        const i64 v20 = min(v9, 4398046511104ll);
        const i64 v22 = max(v20, -4398046511104ll);
        const i64 end = min(v22, i64(8192));
        const i64 v127 = max(v9, -4398046511104ll);
        const i64 v129 = min(v127, 4398046511104ll);
        const i64 v131 = v129 + i64(-64);
        const i64 v13 = load<1, Cache::constant>(lengths + v6).v[0];
        const i64 v133 = max(v13, -4398046511104ll);
        const i64 v135 = min(v133, 4398046511104ll);
        const i64 v137 = v135 + i64(-64);
        const i64 v138 = min(v131, v137);
        const i64 v150 = v138 + i64(64);
        const i64 v148 = end + i64(-1);
        const i64 v151 = min(v150, v148);
        const i32 v153 = i32(max(v151, i64(0)));
        const i32 v155 = v153 / 64;
        const i32 v157 = v155 * 64;
        const i64 v158 = min(i64(v157), end);
        const i32 v160 = i32(max(v158, i64(0)));
        for (i64 v27 = v160; v27 < end; v27 += 64) {
          const i32 v39 = v6 * 128;
          const i32 v41 = i32(v27 / i64(64));
          const i32 v42 = v39 + v41;
          const i64 v43 = load<1, Cache::constant>(table + v42).v[0];
          const bool v45 = saturate_i32(v43) < 2048;
          const bool v47 = saturate_i32(v43) >= 0;
          const bool v48 = v47 && v45;
          const i64 v50 = v48 ? v43 : i64(2048);
          const i32 v52 = i32(v27 % i64(64));
          const i32 v94 = v6 * 128;
          const i32 v96 = i32(v27 / i64(64));
          const i32 v97 = v94 + v96;
          const i64 v98 = load<1, Cache::constant>(table + v97).v[0];
          const bool v100 = saturate_i32(v98) < 2048;
          const bool v102 = saturate_i32(v98) >= 0;
          const bool v103 = v102 && v100;
          const i64 v105 = v103 ? v98 : i64(2048);
          const i32 v107 = i32(v27 % i64(64));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, v52, v4, i32(v50));
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, v107, v4, i32(v105));
          v_turn.next();
        }
        const bool v165 = v160 < saturate_i32(end);
        const i32 v166 = v165 ? v160 : 0;
        for (i64 v167 = 0; v167 < v166; v167 += 64) {
          const i32 v173 = v6 * 128;
          const i32 v175 = i32(v167 / i64(64));
          const i32 v176 = v173 + v175;
          const i64 v177 = load<1, Cache::constant>(table + v176).v[0];
          const bool v179 = saturate_i32(v177) < 2048;
          const bool v181 = saturate_i32(v177) >= 0;
          const bool v182 = v181 && v179;
          const i64 v184 = v182 ? v177 : i64(2048);
          const i32 v186 = i32(v167 % i64(64));
          const i32 v219 = v6 * 128;
          const i32 v221 = i32(v167 / i64(64));
          const i32 v222 = v219 + v221;
          const i64 v223 = load<1, Cache::constant>(table + v222).v[0];
          const bool v225 = saturate_i32(v223) < 2048;
          const bool v227 = saturate_i32(v223) >= 0;
          const bool v228 = v227 && v225;
          const i64 v230 = v228 ? v223 : i64(2048);
          const i32 v232 = i32(v167 % i64(64));
          Barrier& k_full = refill(k_ring, k_turn, k_block::bytes);
          tma_load_panels<2, k_block::panel_bytes, 64>(k_blocks + k_turn.place * k_block::bytes, k_map, k_full, 0, v186, v4, i32(v184));
          k_turn.next();
          Barrier& v_full = refill(v_ring, v_turn, v_block::bytes);
          tma_load_panels<2, v_block::panel_bytes, 64>(v_blocks + v_turn.place * v_block::bytes, v_map, v_full, 0, v232, v4, i32(v230));
          v_turn.next();
        }
      }
    }
  } else {
    registers_up<256>();
    const int group = warpgroup();
    for (i32 program = i32(blockIdx.x); program < 128; program += i32(gridDim.x)) {
      const i32 program_2 = program;
      const i32 v4 = program_2 % 8;
      const i32 v6 = program_2 / 8;
      const i64 v9 = load<1, Cache::constant>(lengths + v6).v[0];
      const i64 v13 = load<1, Cache::constant>(lengths + v6).v[0];
      const i64 v20 = min(v9, 4398046511104ll);
      const i64 v22 = max(v20, -4398046511104ll);
      const i64 end = min(v22, i64(8192));
      const i64 v127 = max(v9, -4398046511104ll);
      const i64 v129 = min(v127, 4398046511104ll);
      const i64 v131 = v129 + i64(-64);
      const i64 v133 = max(v13, -4398046511104ll);
      const i64 v135 = min(v133, 4398046511104ll);
      const i64 v137 = v135 + i64(-64);
      const i64 v138 = min(v131, v137);
      const i64 v140 = v138 + i64(64);
      const i64 v142 = max(v140, i64(0));
      const i64 v144 = v142 / i64(64);
      const i64 v146 = v144 * i64(64);
      const i64 v148 = end + i64(-1);
      const i64 v150 = v138 + i64(64);
      const i64 v151 = min(v150, v148);
      const i32 v153 = i32(max(v151, i64(0)));
      const i32 v155 = v153 / 64;
      const i32 v157 = v155 * 64;
      const i64 v158 = min(i64(v157), end);
      const i32 v160 = i32(max(v158, i64(0)));
      const bool v165 = v160 < saturate_i32(end);
      const i32 v166 = v165 ? v160 : 0;

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

      Vec<f32, 2> v55[2][8];
      f32 v61[2];
      f32 v81[2];
      Vec<f32, 2> v86_wide[2][8];
      f32 v83[2];
      Vec<f32, 2> v189[2][8];
      f32 v192[2];
      f32 v212[2];
      f32 v214[2];
      wait_full(q_ring, q_turn);
      Vec<bf16, 2> v86[2][8];
      const i64 v27_end = end, v27_step = 64;
      if (v160 < v27_end) {
        {
          const i32 v27 = i32(v160);
          const i32 v39 = v6 * 128;
          const i32 v41 = v27 / 64;
          const i32 v42 = v39 + v41;
          const i64 v43 = load<1, Cache::constant>(table + v42).v[0];
          const bool v45 = saturate_i32(v43) < 2048;
          const bool v47 = saturate_i32(v43) >= 0;
          const bool v48 = v47 && v45;
          const i64 v50 = v48 ? v43 : i64(2048);
          const i32 v52 = v27 % 64;
          const i32 v94 = v6 * 128;
          const i32 v96 = v27 / 64;
          const i32 v97 = v94 + v96;
          const i64 v98 = load<1, Cache::constant>(table + v97).v[0];
          const bool v100 = saturate_i32(v98) < 2048;
          const bool v102 = saturate_i32(v98) >= 0;
          const bool v103 = v102 && v100;
          const i64 v105 = v103 ? v98 : i64(2048);
          const i32 v107 = v27 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(v55, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v55);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v58_2 = ((v27 + ((c * 4 + t) * 2 + v)) < saturate_i32(v9)) ? v55[r][c].v[v] : (-infinity());
                v61[r] = max(v61[r], v58_2);
              }
            }
          }
          reduce_lanes<Max, 4>(v61);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v81[r] = Sum::identity<f32>();
            const f32 v63_2 = max(v28[r], v61[r]);
            const bool v65_2 = v63_2 == (-infinity());
            const f32 v67_2 = v65_2 ? 0.0f : v63_2;
            const f32 v77_2 = max(v67_2, -3.4028235e+38f);
            const f32 v80_offset = fast::exp_offset(v77_2);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v58_3 = ((v27 + ((c * 4 + t) * 2 + v)) < saturate_i32(v9)) ? v55[r][c].v[v] : (-infinity());
                const f32 v80_2 = fast::exp2(fmaf(v58_3, 0.12751743f, v80_offset));
                v81[r] += v80_2;
                v86_wide[r][c].v[v] = v80_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v81);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v63_3 = max(v28[r], v61[r]);
            const f32 v72_2 = max((v63_3 == (-infinity())) ? 0.0f : v63_3, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v83[r] = (v29[r] * fast::exp(-v72_2)) + v81[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v63_4 = max(v28[r], v61[r]);
            const bool v65_3 = v63_4 == (-infinity());
            const f32 v67_3 = v65_3 ? 0.0f : v63_4;
            const f32 v71_2 = max(v67_3, -3.4028235e+38f);
            const f32 v69_2 = max(v28[r], -3.4028235e+38f);
            const f32 v72_3 = v71_2 - v69_2;
            const f32 v74_2 = fast::exp(-v72_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v74_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v86[r][c] = from_f32<bf16>(v86_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v61[r]);
          }
          f32 v83_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v83_old[r] = v83[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v83_old[r];
          }
          wait_full(v_ring, v_turn);
          zero_unused<v_block, true, 128>(v_blocks + v_turn.place * v_block::bytes, [&](i32 i) { return (v27 + i) < saturate_i32(v13); });
          bulk_store_fence();
          warpgroup_sync(group);
        }
        for (i64 v27_i = v160 + v27_step; v27_i < v27_end; v27_i += v27_step) {
          const i32 v27 = i32(v27_i);
          const i32 v39 = v6 * 128;
          const i32 v41 = v27 / 64;
          const i32 v42 = v39 + v41;
          const i64 v43 = load<1, Cache::constant>(table + v42).v[0];
          const bool v45 = saturate_i32(v43) < 2048;
          const bool v47 = saturate_i32(v43) >= 0;
          const bool v48 = v47 && v45;
          const i64 v50 = v48 ? v43 : i64(2048);
          const i32 v52 = v27 % 64;
          const i32 v94 = v6 * 128;
          const i32 v96 = v27 / 64;
          const i32 v97 = v94 + v96;
          const i64 v98 = load<1, Cache::constant>(table + v97).v[0];
          const bool v100 = saturate_i32(v98) < 2048;
          const bool v102 = saturate_i32(v98) >= 0;
          const bool v103 = v102 && v100;
          const i64 v105 = v103 ? v98 : i64(2048);
          const i32 v107 = v27 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(v55, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v30, v86, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v55);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v58_4 = ((v27 + ((c * 4 + t) * 2 + v)) < saturate_i32(v9)) ? v55[r][c].v[v] : (-infinity());
                v61[r] = max(v61[r], v58_4);
              }
            }
          }
          reduce_lanes<Max, 4>(v61);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v61[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v81[r] = Sum::identity<f32>();
            const f32 v63_5 = max(v28[r], v61[r]);
            const bool v65_4 = v63_5 == (-infinity());
            const f32 v67_4 = v65_4 ? 0.0f : v63_5;
            const f32 v77_3 = max(v67_4, -3.4028235e+38f);
            const f32 v80_offset_2 = fast::exp_offset(v77_3);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v58_5 = ((v27 + ((c * 4 + t) * 2 + v)) < saturate_i32(v9)) ? v55[r][c].v[v] : (-infinity());
                const f32 v80_3 = fast::exp2(fmaf(v58_5, 0.12751743f, v80_offset_2));
                v81[r] += v80_3;
                v86_wide[r][c].v[v] = v80_3;
              }
            }
          }
          reduce_lanes<Sum, 4>(v81);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v63_6 = max(v28[r], v61[r]);
            const f32 v72_4 = max((v63_6 == (-infinity())) ? 0.0f : v63_6, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v83[r] = (v29[r] * fast::exp(-v72_4)) + v81[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v30);
          wgmma_pin(v86);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v63_7 = max(v28[r], v61[r]);
            const bool v65_5 = v63_7 == (-infinity());
            const f32 v67_5 = v65_5 ? 0.0f : v63_7;
            const f32 v71_3 = max(v67_5, -3.4028235e+38f);
            const f32 v69_3 = max(v28[r], -3.4028235e+38f);
            const f32 v72_5 = v71_3 - v69_3;
            const f32 v74_3 = fast::exp(-v72_5);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v74_3;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v86[r][c] = from_f32<bf16>(v86_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v61[r]);
          }
          f32 v83_old_2[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v83_old_2[r] = v83[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v83_old_2[r];
          }
          wait_full(v_ring, v_turn);
          zero_unused<v_block, true, 128>(v_blocks + v_turn.place * v_block::bytes, [&](i32 i) { return (v27 + i) < saturate_i32(v13); });
          bulk_store_fence();
          warpgroup_sync(group);
        }
        const i64 v167_end = v166, v167_step = 64;
        for (i64 v167_i = 0; v167_i < v167_end; v167_i += v167_step) {
          const i32 v167 = i32(v167_i);
          const i32 v173 = v6 * 128;
          const i32 v175 = v167 / 64;
          const i32 v176 = v173 + v175;
          const i64 v177 = load<1, Cache::constant>(table + v176).v[0];
          const bool v179 = saturate_i32(v177) < 2048;
          const bool v181 = saturate_i32(v177) >= 0;
          const bool v182 = v181 && v179;
          const i64 v184 = v182 ? v177 : i64(2048);
          const i32 v186 = v167 % 64;
          const i32 v219 = v6 * 128;
          const i32 v221 = v167 / 64;
          const i32 v222 = v219 + v221;
          const i64 v223 = load<1, Cache::constant>(table + v222).v[0];
          const bool v225 = saturate_i32(v223) < 2048;
          const bool v227 = saturate_i32(v223) >= 0;
          const bool v228 = v227 && v225;
          const i64 v230 = v228 ? v223 : i64(2048);
          const i32 v232 = v167 % 64;
          wait_full(k_ring, k_turn);
          wgmma_block<q_block, k_block, 1>(v189, q_blocks + q_turn.place * q_block::bytes, k_blocks + k_turn.place * k_block::bytes, group, false);
          wait_full(v_ring, v_turn);
          wgmma_block<v_block>(v30, v86, v_blocks + v_turn.place * v_block::bytes, true);
          wgmma_wait<1>();
          wgmma_pin(v189);
          release<1>(k_ring, k_turn.place);
          k_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v192[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v192[r] = max(v192[r], v189[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(v192);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v192[r] *= 0.088388346f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v212[r] = Sum::identity<f32>();
            const f32 v194_2 = max(v28[r], v192[r]);
            const bool v196_2 = v194_2 == (-infinity());
            const f32 v198_2 = v196_2 ? 0.0f : v194_2;
            const f32 v208_2 = max(v198_2, -3.4028235e+38f);
            const f32 v211_offset = fast::exp_offset(v208_2);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v211_2 = fast::exp2(fmaf(v189[r][c].v[v], 0.12751743f, v211_offset));
                v212[r] += v211_2;
                v86_wide[r][c].v[v] = v211_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v212);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v194_3 = max(v28[r], v192[r]);
            const f32 v203_2 = max((v194_3 == (-infinity())) ? 0.0f : v194_3, -3.4028235e+38f) - max(v28[r], -3.4028235e+38f);
            v214[r] = (v29[r] * fast::exp(-v203_2)) + v212[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v30);
          wgmma_pin(v86);
          release<1>(v_ring, v_turn.place);
          v_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v194_4 = max(v28[r], v192[r]);
            const bool v196_3 = v194_4 == (-infinity());
            const f32 v198_3 = v196_3 ? 0.0f : v194_4;
            const f32 v202_2 = max(v198_3, -3.4028235e+38f);
            const f32 v200_2 = max(v28[r], -3.4028235e+38f);
            const f32 v203_3 = v202_2 - v200_2;
            const f32 v205_2 = fast::exp(-v203_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v30[r][c].v[v] = v30[r][c].v[v] * v205_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 8; ++c) {
              v86[r][c] = from_f32<bf16>(v86_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = max(v28[r], v192[r]);
          }
          f32 v214_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v214_old[r] = v214[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v29[r] = v214_old[r];
          }
        }
        wait_full(v_ring, v_turn);
        wgmma_block<v_block>(v30, v86, v_blocks + v_turn.place * v_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v30);
        wgmma_pin(v86);
        release<1>(v_ring, v_turn.place);
        v_turn.next();
      }
      release<1>(q_ring, q_turn.place);
      q_turn.next();

      const int t52_rows = end_inside(i64(0), 8, 64);
      bf16* const t52_at = t52 + v6 * 8192 + v4 * 1024 + g * 128 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool v118_2 = v28[r] == (-infinity());
        const f32 v121_2 = v118_2 ? 1.0f : v29[r];
        const f32 v122_2 = fast::reciprocal(v121_2);
#pragma unroll
        for (int wide = 0; wide < 4; ++wide) {
          Vec<bf16, 2> t52_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t52_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t52_out.v[v] = v30[r][c].v[v] * v122_2;
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
