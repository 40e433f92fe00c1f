// attention: q bf16[16,4096,64], k bf16[16,4096,64], v bf16[16,4096,64] -> y bf16[16,4096,64]
// schedule: threads=128 threads_per_row=4 vector_bytes=16 stages=2 dot=mma longest_first=true
// tiles [128,64]: as tensor cores accumulate: row g, g + 8 and so on, column (c*4 + t)*2 + v; 4 rows, 8 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"
#include "tw_cuda/mma_dot.cuh"
#include "tw_cuda/quad.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(128) attention(const bf16* __restrict__ q, const bf16* __restrict__ k, const bf16* __restrict__ v_, bf16* __restrict__ y) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4;
  const i32 program = i32(blockIdx.x);
  const i32 program_1 = 31 - program / 16;
  const i32 program_2 = program % 16;
  using q_block = Block<bf16, 128, 64, Major::k>;
  const u32 q_blocks = block_stage();
  using k_block = Block<bf16, 64, 64, Major::k>;
  const u32 k_blocks = q_blocks + 1 * q_block::bytes;
  using v_block = Block<bf16, 64, 64, Major::mn>;
  const u32 v_blocks = k_blocks + 2 * k_block::bytes;
  int stage = 0;  // which of a block's places is multiplied
  const i32 v2 = program_1 * 128;
  const i32 v11 = v2 + 1;
  const i32 v12 = min(4096, v11);
  const i32 v14 = max(0, v12);
  const i32 v16 = v14 / 64;
  const i32 v18 = v16 * 64;

  f32 v22[4];
  f32 v23[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    v22[r] = -infinity();
    v23[r] = 0.0f;
  }

  Vec<f32, 2> v24[4][8];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        v24[r][c].v[v] = 0.0f;
      }
    }
  }

  Vec<f32, 2> v29[4][8];
  f32 v32[4];
  f32 v40[4];
  Vec<bf16, 2> v48[4][8];
  f32 v43[4];
  copy_block<q_block, 128, true>(q_blocks, q + program_2 * 262144 + v2 * 64, 1, 64, 64, 128);
  copy_async_commit();
  const i64 v21_end = v18, v21_step = 64;
  const auto copy_k_block = [&](i64 at, int stage) {
    if (at < v21_end) {
      const i32 v21 = i32(at);
      copy_block<k_block, 128, true>(k_blocks + stage * k_block::bytes, k + program_2 * 262144 + v21 * 64, 1, 64, 64, 64);
    }
  };
  const auto copy_v_block = [&](i64 at, int stage) {
    if (at < v21_end) {
      const i32 v21 = i32(at);
      copy_block<v_block, 128, true>(v_blocks + stage * v_block::bytes, v_ + program_2 * 262144 + v21 * 64, 1, 64, 64, 64);
    }
  };
  copy_k_block(0, 0);
  copy_v_block(0, 0);
  copy_async_commit();
  stage = 0;
  for (i64 v21_i = 0; v21_i < v21_end; v21_i += v21_step) {
    const i32 v21 = i32(v21_i);
    copy_async_wait<0>();
    __syncthreads();
    copy_k_block(v21_i + v21_step, stage == 0 ? 1 : stage - 1);
    copy_v_block(v21_i + v21_step, stage == 0 ? 1 : stage - 1);
    copy_async_commit();
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          v29[r][c].v[v] = 0.0f;
        }
      }
    }
    mma_block<q_block, k_block, 128, 1>(v29, q_blocks, k_blocks + stage * k_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v32[r] = Max::identity<f32>();
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          v32[r] = max(v32[r], v29[r][c].v[v]);
        }
      }
    }
    reduce_lanes<Max, 4>(v32);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v32[r] *= 0.125f;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v40[r] = Sum::identity<f32>();
      const f32 v34_2 = max(v22[r], v32[r]);
      const f32 v37_offset = fast::exp_offset(v34_2);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        Vec<f32, 2> v48_new;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 v37_2 = fast::exp2(fmaf(v29[r][c].v[v], 0.18033688f, v37_offset));
          v40[r] += v37_2;
          v48_new.v[v] = v37_2;
        }
        v48[r][c] = from_f32<bf16>(v48_new);
      }
    }
    reduce_lanes<Sum, 4>(v40);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const f32 v34_3 = max(v22[r], v32[r]);
      const f32 v38_2 = v22[r] - v34_3;
      const f32 v39_2 = fast::exp(v38_2);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          v24[r][c].v[v] = v24[r][c].v[v] * v39_2;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const f32 v42_2 = v23[r] * fast::exp(v22[r] - max(v22[r], v32[r]));
      v43[r] = v42_2 + v40[r];
    }
    mma_block<v_block>(v24, v48, v_blocks + stage * v_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v22[r] = max(v22[r], v32[r]);
    }
    f32 v43_old[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v43_old[r] = v43[r];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v23[r] = v43_old[r];
    }
    stage = stage == 1 ? 0 : stage + 1;
  }
  copy_async_wait<0>();
  __syncthreads();
  const i32 v55 = v2 + 128;
  const i32 v56 = min(4096, v55);

  Vec<f32, 2> v66[4][8];
  f32 v84[4];
  f32 v96[4];
  Vec<bf16, 2> v104[4][8];
  f32 v99[4];
  const i64 v58_end = v56, v58_step = 64;
  const auto copy_k_block_2 = [&](i64 at, int stage) {
    if (at < v58_end) {
      const i32 v58 = i32(at);
      copy_block<k_block, 128, true>(k_blocks + stage * k_block::bytes, k + program_2 * 262144 + v58 * 64, 1, 64, 64, end_inside(i64(v58), 4096, 64));
    }
  };
  const auto copy_v_block_2 = [&](i64 at, int stage) {
    if (at < v58_end) {
      const i32 v58 = i32(at);
      copy_block<v_block, 128, true>(v_blocks + stage * v_block::bytes, v_ + program_2 * 262144 + v58 * 64, 1, 64, 64, end_inside(i64(v58), 4096, 64));
    }
  };
  copy_k_block_2(v18, 0);
  copy_v_block_2(v18, 0);
  copy_async_commit();
  stage = 0;
  for (i64 v58_i = v18; v58_i < v58_end; v58_i += v58_step) {
    const i32 v58 = i32(v58_i);
    copy_async_wait<0>();
    __syncthreads();
    copy_k_block_2(v58_i + v58_step, stage == 0 ? 1 : stage - 1);
    copy_v_block_2(v58_i + v58_step, stage == 0 ? 1 : stage - 1);
    copy_async_commit();
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          v66[r][c].v[v] = 0.0f;
        }
      }
    }
    mma_block<q_block, k_block, 128, 1>(v66, q_blocks, k_blocks + stage * k_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v84[r] = Max::identity<f32>();
      const i32 v73_2 = v2 + (r / 2 * 64 + r % 2 * 8 + g);
      const i32 v76_2 = v73_2 + 0;
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 v83_2 = ((v58 + ((c * 4 + t) * 2 + v)) <= v76_2) ? (v66[r][c].v[v] * 0.125f) : (-infinity());
          v84[r] = max(v84[r], v83_2);
        }
      }
    }
    reduce_lanes<Max, 4>(v84);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v96[r] = Sum::identity<f32>();
      const i32 v73_3 = v2 + (r / 2 * 64 + r % 2 * 8 + g);
      const i32 v76_3 = v73_3 + 0;
      const f32 v86_2 = max(v22[r], v84[r]);
      const bool v88_2 = v86_2 == (-infinity());
      const f32 v90_2 = v88_2 ? 0.0f : v86_2;
      const f32 v93_offset = fast::exp_offset(v90_2);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        Vec<f32, 2> v104_new;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 v83_3 = ((v58 + ((c * 4 + t) * 2 + v)) <= v76_3) ? (v66[r][c].v[v] * 0.125f) : (-infinity());
          const f32 v93_2 = fast::exp2(fmaf(v83_3, fast::kLog2E, v93_offset));
          v96[r] += v93_2;
          v104_new.v[v] = v93_2;
        }
        v104[r][c] = from_f32<bf16>(v104_new);
      }
    }
    reduce_lanes<Sum, 4>(v96);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const f32 v86_3 = max(v22[r], v84[r]);
      const bool v88_3 = v86_3 == (-infinity());
      const f32 v90_3 = v88_3 ? 0.0f : v86_3;
      const f32 v94_2 = v22[r] - v90_3;
      const f32 v95_2 = fast::exp(v94_2);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          v24[r][c].v[v] = v24[r][c].v[v] * v95_2;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const f32 v86_4 = max(v22[r], v84[r]);
      const f32 v95_3 = fast::exp(v22[r] - ((v86_4 == (-infinity())) ? 0.0f : v86_4));
      v99[r] = (v23[r] * v95_3) + v96[r];
    }
    mma_block<v_block>(v24, v104, v_blocks + stage * v_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v22[r] = max(v22[r], v84[r]);
    }
    f32 v99_old[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v99_old[r] = v99[r];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      v23[r] = v99_old[r];
    }
    stage = stage == 1 ? 0 : stage + 1;
  }
  copy_async_wait<0>();
  __syncthreads();

  bf16* const y_at = y + program_2 * 262144 + v2 * 64 + g * 64 + t * 8;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const bool v110_2 = v22[r] == (-infinity());
    const f32 v112_2 = v110_2 ? 1.0f : v23[r];
    const f32 v114_2 = fast::div(1.0f, v112_2);
    const f32 v116_2 = v110_2 ? 0.0f : v114_2;
#pragma unroll
    for (int wide = 0; wide < 2; ++wide) {
      Vec<bf16, 2> y_parts[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int c = wide * 4 + part;
        Vec<f32, 2> y_out;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          y_out.v[v] = v24[r][c].v[v] * v116_2;
        }
        y_parts[part] = from_f32<bf16>(y_out);
      }
      const int c = wide;
      store(y_at + r / 2 * 4096 + r % 2 * 512 + c * 32, across_quad(y_parts));
    }
  }
}

}  // namespace tw
