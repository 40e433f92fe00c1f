// threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true fa3_pingpong=true longest_first=true; predicted 9.07 us
// le_matmul_where_mul_2: t39 bf16[2,12,1024,64], t39_1 bf16[2,12,1024,64], t39_2 bf16[2,12,1024,64] -> t85 bf16[2,12,1024,64]
// schedule: threads=256 threads_per_row=4 vector_bytes=16 stages=2 dot=wgmma ahead=true fa3_pingpong=true longest_first=true
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
        const i32 v8 = program_2 / 12;
        const i32 v6 = program_2 % 12;
        const i32 program_1 = 7 - program / 24;
        const i32 v3 = program_1 * 128;
        Barrier& t39_full = refill(t39_ring, t39_turn, t39_block::bytes);
        tma_load_panels<1, t39_block::panel_bytes, 64>(t39_blocks + t39_turn.place * t39_block::bytes, t39_map, t39_full, 0, v3, v6, v8);
        t39_turn.next();
        const i32 end = v3 + 128;
        const i32 v88 = program_1 * 128;
        const i32 v90 = v88 + (-127);
        const i32 v102 = v90 + 128;
        const i32 v100 = end + (-1);
        const i32 v103 = min(v102, v100);
        const i32 v105 = max(v103, 0);
        const i32 v107 = v105 / 128;
        const i32 v109 = v107 * 128;
        const i32 v110 = min(v109, end);
        const i32 v112 = max(v110, 0);
        for (i64 v26 = v112; v26 < end; v26 += 128) {
          Barrier& t39_1_full = refill(t39_1_ring, t39_1_turn, t39_1_block::bytes);
          tma_load_panels<1, t39_1_block::panel_bytes, 64>(t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, t39_1_map, t39_1_full, 0, i32(v26), v6, v8);
          t39_1_turn.next();
          Barrier& t39_2_full = refill(t39_2_ring, t39_2_turn, t39_2_block::bytes);
          tma_load_panels<1, t39_2_block::panel_bytes, 64>(t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, t39_2_map, t39_2_full, 0, i32(v26), v6, v8);
          t39_2_turn.next();
        }
        const bool v117 = v112 < end;
        const i32 v118 = v117 ? v112 : 0;
        for (i64 v119 = 0; v119 < v118; v119 += 128) {
          Barrier& t39_1_full = refill(t39_1_ring, t39_1_turn, t39_1_block::bytes);
          tma_load_panels<1, t39_1_block::panel_bytes, 64>(t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, t39_1_map, t39_1_full, 0, i32(v119), v6, v8);
          t39_1_turn.next();
          Barrier& t39_2_full = refill(t39_2_ring, t39_2_turn, t39_2_block::bytes);
          tma_load_panels<1, t39_2_block::panel_bytes, 64>(t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, t39_2_map, t39_2_full, 0, i32(v119), v6, v8);
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
      const i32 v3 = program_1 * 128;
      const i32 v6 = program_2 % 12;
      const i32 v8 = program_2 / 12;
      const i32 end = v3 + 128;
      const i32 v88 = program_1 * 128;
      const i32 v90 = v88 + (-127);
      const i32 v92 = v90 + 128;
      const i32 v94 = max(v92, 0);
      const i32 v96 = v94 / 128;
      const i32 v98 = v96 * 128;
      const i32 v100 = end + (-1);
      const i32 v102 = v90 + 128;
      const i32 v103 = min(v102, v100);
      const i32 v105 = max(v103, 0);
      const i32 v107 = v105 / 128;
      const i32 v109 = v107 * 128;
      const i32 v110 = min(v109, end);
      const i32 v112 = max(v110, 0);
      const bool v117 = v112 < end;
      const i32 v118 = v117 ? v112 : 0;

      f32 v27[2];
      f32 v28[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        v27[r] = -infinity();
        v28[r] = 0.0f;
      }

      Vec<f32, 2> v29[2][8];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) {
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            v29[r][c].v[v] = 0.0f;
          }
        }
      }

      Vec<f32, 2> v40[2][16];
      f32 v45[2];
      Vec<f32, 2> v42[2][16];
      f32 v65[2];
      Vec<f32, 2> v70_wide[2][16];
      f32 v67[2];
      Vec<f32, 2> v126[2][16];
      f32 v129[2];
      f32 v149[2];
      f32 v151[2];
      wait_full(t39_ring, t39_turn);
      Vec<bf16, 2> v70[2][16];
      const i64 v26_end = end, v26_step = 128;
      if (v112 < v26_end) {
        {
          const i32 v26 = i32(v112);
          wait_full(t39_1_ring, t39_1_turn);
          wgmma_block<t39_block, t39_1_block, 2>(v40, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wgmma_wait<0>();
          wgmma_pin(v40);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v45[r] = Max::identity<f32>();
            const i32 v13_2 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v42_2 = ((v26 + ((c * 4 + t) * 2 + v)) <= v13_2) ? v40[r][c].v[v] : (-infinity());
                v45[r] = max(v45[r], v42_2);
                v42[r][c].v[v] = v42_2;
              }
            }
          }
          reduce_lanes<Max, 4>(v45);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v45[r] *= 0.125f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v65[r] = Sum::identity<f32>();
            const f32 v47_2 = max(v27[r], v45[r]);
            const bool v49_2 = v47_2 == (-infinity());
            const f32 v51_2 = v49_2 ? 0.0f : v47_2;
            const f32 v61_2 = max(v51_2, -3.4028235e+38f);
            const f32 v64_offset = fast::exp_offset(v61_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v64_2 = fast::exp2(fmaf(v42[r][c].v[v], 0.18033688f, v64_offset));
                v65[r] += v64_2;
                v70_wide[r][c].v[v] = v64_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v65);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v47_3 = max(v27[r], v45[r]);
            const f32 v56_2 = max((v47_3 == (-infinity())) ? 0.0f : v47_3, -3.4028235e+38f) - max(v27[r], -3.4028235e+38f);
            v67[r] = (v28[r] * fast::exp(-v56_2)) + v65[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v47_4 = max(v27[r], v45[r]);
            const bool v49_3 = v47_4 == (-infinity());
            const f32 v51_3 = v49_3 ? 0.0f : v47_4;
            const f32 v55_2 = max(v51_3, -3.4028235e+38f);
            const f32 v53_2 = max(v27[r], -3.4028235e+38f);
            const f32 v56_3 = v55_2 - v53_2;
            const f32 v58_2 = fast::exp(-v56_3);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v29[r][c].v[v] = v29[r][c].v[v] * v58_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v70[r][c] = from_f32<bf16>(v70_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v27[r] = max(v27[r], v45[r]);
          }
          f32 v67_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v67_old[r] = v67[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = v67_old[r];
          }
        }
        for (i64 v26_i = v112 + v26_step; v26_i < v26_end; v26_i += v26_step) {
          const i32 v26 = i32(v26_i);
          wait_full(t39_1_ring, t39_1_turn);
          pingpong_wait(group);
          wgmma_block<t39_block, t39_1_block, 2>(v40, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wait_full(t39_2_ring, t39_2_turn);
          wgmma_block<t39_2_block>(v29, v70, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(v40);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v45[r] = Max::identity<f32>();
            const i32 v13_3 = v3 + (r * 8 + g);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v42_3 = ((v26 + ((c * 4 + t) * 2 + v)) <= v13_3) ? v40[r][c].v[v] : (-infinity());
                v45[r] = max(v45[r], v42_3);
                v42[r][c].v[v] = v42_3;
              }
            }
          }
          reduce_lanes<Max, 4>(v45);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v45[r] *= 0.125f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v65[r] = Sum::identity<f32>();
            const f32 v47_5 = max(v27[r], v45[r]);
            const bool v49_4 = v47_5 == (-infinity());
            const f32 v51_4 = v49_4 ? 0.0f : v47_5;
            const f32 v61_3 = max(v51_4, -3.4028235e+38f);
            const f32 v64_offset_2 = fast::exp_offset(v61_3);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v64_3 = fast::exp2(fmaf(v42[r][c].v[v], 0.18033688f, v64_offset_2));
                v65[r] += v64_3;
                v70_wide[r][c].v[v] = v64_3;
              }
            }
          }
          reduce_lanes<Sum, 4>(v65);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v47_6 = max(v27[r], v45[r]);
            const f32 v56_4 = max((v47_6 == (-infinity())) ? 0.0f : v47_6, -3.4028235e+38f) - max(v27[r], -3.4028235e+38f);
            v67[r] = (v28[r] * fast::exp(-v56_4)) + v65[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v29);
          wgmma_pin(v70);
          release<1>(t39_2_ring, t39_2_turn.place);
          t39_2_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v47_7 = max(v27[r], v45[r]);
            const bool v49_5 = v47_7 == (-infinity());
            const f32 v51_5 = v49_5 ? 0.0f : v47_7;
            const f32 v55_3 = max(v51_5, -3.4028235e+38f);
            const f32 v53_3 = max(v27[r], -3.4028235e+38f);
            const f32 v56_5 = v55_3 - v53_3;
            const f32 v58_3 = fast::exp(-v56_5);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v29[r][c].v[v] = v29[r][c].v[v] * v58_3;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v70[r][c] = from_f32<bf16>(v70_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v27[r] = max(v27[r], v45[r]);
          }
          f32 v67_old_2[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v67_old_2[r] = v67[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = v67_old_2[r];
          }
        }
        const i64 v119_end = v118, v119_step = 128;
        for (i64 v119_i = 0; v119_i < v119_end; v119_i += v119_step) {
          const i32 v119 = i32(v119_i);
          wait_full(t39_1_ring, t39_1_turn);
          pingpong_wait(group);
          wgmma_block<t39_block, t39_1_block, 2>(v126, t39_blocks + t39_turn.place * t39_block::bytes, t39_1_blocks + t39_1_turn.place * t39_1_block::bytes, group, false);
          wait_full(t39_2_ring, t39_2_turn);
          wgmma_block<t39_2_block>(v29, v70, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
          pingpong_signal<2>(group);
          wgmma_wait<1>();
          wgmma_pin(v126);
          release<1>(t39_1_ring, t39_1_turn.place);
          t39_1_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v129[r] = Max::identity<f32>();
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v129[r] = max(v129[r], v126[r][c].v[v]);
              }
            }
          }
          reduce_lanes<Max, 4>(v129);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v129[r] *= 0.125f;
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v149[r] = Sum::identity<f32>();
            const f32 v131_2 = max(v27[r], v129[r]);
            const bool v133_2 = v131_2 == (-infinity());
            const f32 v135_2 = v133_2 ? 0.0f : v131_2;
            const f32 v145_2 = max(v135_2, -3.4028235e+38f);
            const f32 v148_offset = fast::exp_offset(v145_2);
#pragma unroll
            for (int c = 0; c < 16; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                const f32 v148_2 = fast::exp2(fmaf(v126[r][c].v[v], 0.18033688f, v148_offset));
                v149[r] += v148_2;
                v70_wide[r][c].v[v] = v148_2;
              }
            }
          }
          reduce_lanes<Sum, 4>(v149);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v131_3 = max(v27[r], v129[r]);
            const f32 v140_2 = max((v131_3 == (-infinity())) ? 0.0f : v131_3, -3.4028235e+38f) - max(v27[r], -3.4028235e+38f);
            v151[r] = (v28[r] * fast::exp(-v140_2)) + v149[r];
          }
          wgmma_wait<0>();
          wgmma_pin(v29);
          wgmma_pin(v70);
          release<1>(t39_2_ring, t39_2_turn.place);
          t39_2_turn.next();
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const f32 v131_4 = max(v27[r], v129[r]);
            const bool v133_3 = v131_4 == (-infinity());
            const f32 v135_3 = v133_3 ? 0.0f : v131_4;
            const f32 v139_2 = max(v135_3, -3.4028235e+38f);
            const f32 v137_2 = max(v27[r], -3.4028235e+38f);
            const f32 v140_3 = v139_2 - v137_2;
            const f32 v142_2 = fast::exp(-v140_3);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                v29[r][c].v[v] = v29[r][c].v[v] * v142_2;
              }
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
#pragma unroll
            for (int c = 0; c < 16; ++c) {
              v70[r][c] = from_f32<bf16>(v70_wide[r][c]);
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v27[r] = max(v27[r], v129[r]);
          }
          f32 v151_old[2];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v151_old[r] = v151[r];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            v28[r] = v151_old[r];
          }
        }
        wait_full(t39_2_ring, t39_2_turn);
        wgmma_block<t39_2_block>(v29, v70, t39_2_blocks + t39_2_turn.place * t39_2_block::bytes, true);
        wgmma_wait<0>();
        wgmma_pin(v29);
        wgmma_pin(v70);
        release<1>(t39_2_ring, t39_2_turn.place);
        t39_2_turn.next();
      }
      release<1>(t39_ring, t39_turn.place);
      t39_turn.next();

      bf16* const t85_at = t85 + v8 * 786432 + v6 * 64 + v3 * 768 + g * 768 + t * 8;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const bool v78_2 = v27[r] == (-infinity());
        const f32 v81_2 = v78_2 ? 1.0f : v28[r];
        const f32 v82_2 = fast::reciprocal(v81_2);
#pragma unroll
        for (int wide = 0; wide < 2; ++wide) {
          Vec<bf16, 2> t85_parts[4];
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            const int c = wide * 4 + part;
            Vec<f32, 2> t85_out;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              t85_out.v[v] = v29[r][c].v[v] * v82_2;
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
