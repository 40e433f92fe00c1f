// attention: q bf16[16,4096,64], k bf16[16,4096,64], v bf16[16,4096,64] -> y bf16[16,4096,64]
// schedule: mma_b2b threads=128 stages=2 longest_first=true
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
  const i32 index = program_1 * 128;
  const i32 begin = max(0, min(4096, index + 1));
  const i32 index_2 = begin / 64 * 64;

  f32 row_max[4];
  f32 row_sum[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    row_max[r] = -infinity();
    row_sum[r] = 0.0f;
  }

  Vec<f32, 2> acc[4][8];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        acc[r][c].v[v] = 0.0f;
      }
    }
  }

  Vec<f32, 2> product[4][8];
  f32 max_of_product[4];
  f32 exp_row_max[4];
  f32 new_row_max[4];
  f32 sum_of_exp_product[4];
  Vec<bf16, 2> exp_product_bf16[4][8];
  f32 new_row_sum[4];
  copy_block<q_block, 128, 16>(q_blocks, q + program_2 * 262144 + index * 64, 1, 64, 64, 128);
  copy_async_commit();
  const i64 k_2_end = index_2, k_2_step = 64;
  const auto copy_k_block = [&](i64 at, int stage) {
    if (at < k_2_end) {
      const i32 k_2 = i32(at);
      copy_block<k_block, 128, 16>(k_blocks + stage * k_block::bytes, k + program_2 * 262144 + k_2 * 64, 1, 64, 64, 64);
    }
  };
  const auto copy_v_block = [&](i64 at, int stage) {
    if (at < k_2_end) {
      const i32 k_2 = i32(at);
      copy_block<v_block, 128, 16>(v_blocks + stage * v_block::bytes, v_ + program_2 * 262144 + k_2 * 64, 1, 64, 64, 64);
    }
  };
  copy_k_block(0, 0);
  copy_v_block(0, 0);
  copy_async_commit();
  stage = 0;
  for (i64 k_2_i = 0; k_2_i < k_2_end; k_2_i += k_2_step) {
    const i32 k_2 = i32(k_2_i);
    copy_async_wait<0>();
    __syncthreads();
    copy_k_block(k_2_i + k_2_step, stage == 0 ? 1 : stage - 1);
    copy_v_block(k_2_i + k_2_step, stage == 0 ? 1 : stage - 1);
    copy_async_commit();
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          product[r][c].v[v] = 0.0f;
        }
      }
    }
    mma_block<q_block, k_block, 128, 1>(product, q_blocks, k_blocks + stage * k_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      max_of_product[r] = Max::identity<f32>();
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          max_of_product[r] = max(max_of_product[r], product[r][c].v[v]);
        }
      }
    }
    reduce_lanes<Max, 4>(max_of_product);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      max_of_product[r] *= 0.125f;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      new_row_max[r] = max(row_max[r], max_of_product[r]);
      exp_row_max[r] = fast::exp(row_max[r] - new_row_max[r]);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      sum_of_exp_product[r] = Sum::identity<f32>();
      const f32 exp_product_offset = fast::exp_offset(new_row_max[r]);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        Vec<f32, 2> exp_product_bf16_new;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 exp_product = fast::exp2(fmaf(product[r][c].v[v], 0.18033688f, exp_product_offset));
          sum_of_exp_product[r] += exp_product;
          exp_product_bf16_new.v[v] = exp_product;
        }
        exp_product_bf16[r][c] = from_f32<bf16>(exp_product_bf16_new);
      }
    }
    reduce_lanes<Sum, 4>(sum_of_exp_product);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          acc[r][c].v[v] = acc[r][c].v[v] * exp_row_max[r];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      new_row_sum[r] = row_sum[r] * exp_row_max[r] + sum_of_exp_product[r];
    }
    mma_block<v_block>(acc, exp_product_bf16, v_blocks + stage * v_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      row_max[r] = new_row_max[r];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      row_sum[r] = new_row_sum[r];
    }
    stage = stage == 1 ? 0 : stage + 1;
  }
  copy_async_wait<0>();
  __syncthreads();
  const i32 end = min(4096, index + 128);

  Vec<f32, 2> product_2[4][8];
  i32 index_3[4];
  f32 max_of_product_2[4];
  f32 exp_row_max_2[4];
  f32 finite_row_max[4];
  f32 new_row_max_2[4];
  f32 sum_of_exp_product_2[4];
  Vec<bf16, 2> exp_product_bf16_2[4][8];
  f32 new_row_sum_2[4];
  const i64 k_3_end = end, k_3_step = 64;
  const auto copy_k_block_2 = [&](i64 at, int stage) {
    if (at < k_3_end) {
      const i32 k_3 = i32(at);
      copy_block<k_block, 128, 16>(k_blocks + stage * k_block::bytes, k + program_2 * 262144 + k_3 * 64, 1, 64, 64, end_inside(i64(k_3), 4096, 64));
    }
  };
  const auto copy_v_block_2 = [&](i64 at, int stage) {
    if (at < k_3_end) {
      const i32 k_3 = i32(at);
      copy_block<v_block, 128, 16>(v_blocks + stage * v_block::bytes, v_ + program_2 * 262144 + k_3 * 64, 1, 64, 64, end_inside(i64(k_3), 4096, 64));
    }
  };
  copy_k_block_2(index_2, 0);
  copy_v_block_2(index_2, 0);
  copy_async_commit();
  stage = 0;
  for (i64 k_3_i = index_2; k_3_i < k_3_end; k_3_i += k_3_step) {
    const i32 k_3 = i32(k_3_i);
    copy_async_wait<0>();
    __syncthreads();
    copy_k_block_2(k_3_i + k_3_step, stage == 0 ? 1 : stage - 1);
    copy_v_block_2(k_3_i + k_3_step, stage == 0 ? 1 : stage - 1);
    copy_async_commit();
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          product_2[r][c].v[v] = 0.0f;
        }
      }
    }
    mma_block<q_block, k_block, 128, 1>(product_2, q_blocks, k_blocks + stage * k_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      index_3[r] = (index + (r / 2 * 64 + r % 2 * 8 + g)) + 0;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      max_of_product_2[r] = Max::identity<f32>();
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 masked_product = k_3 + ((c * 4 + t) * 2 + v) <= index_3[r] ? product_2[r][c].v[v] * 0.125f : -infinity();
          max_of_product_2[r] = max(max_of_product_2[r], masked_product);
        }
      }
    }
    reduce_lanes<Max, 4>(max_of_product_2);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      new_row_max_2[r] = max(row_max[r], max_of_product_2[r]);
      finite_row_max[r] = new_row_max_2[r] == -infinity() ? 0.0f : new_row_max_2[r];
      exp_row_max_2[r] = fast::exp(row_max[r] - finite_row_max[r]);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      sum_of_exp_product_2[r] = Sum::identity<f32>();
      const f32 exp_product_offset = fast::exp_offset(finite_row_max[r]);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        Vec<f32, 2> exp_product_bf16_2_new;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          const f32 masked_product = k_3 + ((c * 4 + t) * 2 + v) <= index_3[r] ? product_2[r][c].v[v] * 0.125f : -infinity();
          const f32 exp_product = fast::exp2(fmaf(masked_product, fast::kLog2E, exp_product_offset));
          sum_of_exp_product_2[r] += exp_product;
          exp_product_bf16_2_new.v[v] = exp_product;
        }
        exp_product_bf16_2[r][c] = from_f32<bf16>(exp_product_bf16_2_new);
      }
    }
    reduce_lanes<Sum, 4>(sum_of_exp_product_2);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 8; ++c) {
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          acc[r][c].v[v] = acc[r][c].v[v] * exp_row_max_2[r];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      new_row_sum_2[r] = row_sum[r] * exp_row_max_2[r] + sum_of_exp_product_2[r];
    }
    mma_block<v_block>(acc, exp_product_bf16_2, v_blocks + stage * v_block::bytes);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      row_max[r] = new_row_max_2[r];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      row_sum[r] = new_row_sum_2[r];
    }
    stage = stage == 1 ? 0 : stage + 1;
  }
  copy_async_wait<0>();
  __syncthreads();

  bf16* const y_at = y + program_2 * 262144 + index * 64 + g * 64 + t * 8;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const bool is_empty = row_max[r] == -infinity();
    const f32 finite_row_sum = is_empty ? 1.0f : row_sum[r];
    const f32 quotient = fast::div(1.0f, finite_row_sum);
    const f32 finite_row_sum_2 = is_empty ? 0.0f : quotient;
#pragma unroll
    for (int wide = 0; wide < 2; ++wide) {
      Vec<bf16, 2> y_parts[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int c = wide * 4 + part;
        Vec<f32, 2> y_out;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          y_out.v[v] = acc[r][c].v[v] * finite_row_sum_2;
        }
        y_parts[part] = from_f32<bf16>(y_out);
      }
      const int c = wide;
      store(y_at + r / 2 * 4096 + r % 2 * 512 + c * 32, across_quad(y_parts));
    }
  }
}

}  // namespace tw
