// elements threads=64 threads_per_row=64; predicted 4.66 us
// matmul_add_add_6: add_out bf16[2048,768], pb bf16[768], partial f32[2048,768,2] -> out bf16[2048,768]
// schedule: elements threads=64 threads_per_row=64
// tiles [2,768]: row r, column (c*64 + t)*4 + v; 2 rows, 3 vectors of 4 a thread
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(64) matmul_add_add_6(const bf16* __restrict__ add_out, const bf16* __restrict__ pb, const f32* __restrict__ partial, bf16* __restrict__ out) {
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  wait_for_previous_kernel();

  Vec<f32, 4> running_sum[3];
#pragma unroll
  for (int r = 0; r < 1; ++r) {
#pragma unroll
    for (int c = 0; c < 3; ++c) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        running_sum[c].v[v] = 0.0f;
      }
    }
  }

  for (i32 column = 0; column < 2; column += 2) {
    Vec<f32, 4> partial_in[2][3];
    const f32* const partial_at = partial + program_0 * 768 + column * 1572864 + t * 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        partial_in[r][c] = load<4, Cache::constant>(partial_at + r * 1572864 + c * 256);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int c = 0; c < 3; ++c) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          running_sum[c].v[v] = running_sum[c].v[v] + partial_in[r][c].v[v];
        }
      }
    }
  }

  Vec<f32, 4> sum_of_running_sum[3];
#pragma unroll
  for (int c = 0; c < 3; ++c) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      sum_of_running_sum[c].v[v] = Sum::identity<f32>();
    }
  }
#pragma unroll
  for (int r = 0; r < 1; ++r) {
#pragma unroll
    for (int c = 0; c < 3; ++c) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum_of_running_sum[c].v[v] += running_sum[c].v[v];
      }
    }
  }

  Vec<bf16, 4> add_out_in[3];
  const bf16* const add_out_at = add_out + program_0 * 768 + t * 4;
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    add_out_in[c] = load<4, Cache::constant>(add_out_at + c * 256);
  }
  Vec<bf16, 4> pb_in[3];
  const bf16* const pb_at = pb + t * 4;
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    pb_in[c] = load<4, Cache::constant>(pb_at + c * 256);
  }
  bf16* const out_at = out + program_0 * 768 + t * 4;
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    const Vec<f32, 4> add_out_in_f32 = to_f32(add_out_in[c]);
    const Vec<f32, 4> pb_in_f32 = to_f32(pb_in[c]);
    Vec<f32, 4> out_out;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      out_out.v[v] = add_out_in_f32.v[v] + sum_of_running_sum[c].v[v] + pb_in_f32.v[v];
    }
    store(out_at + c * 256, from_f32<bf16>(out_out));
  }
}

}  // namespace tw
