// elements threads=128 threads_per_row=32; predicted 3.73 us
// matmul_0: partial f32[524288,4] -> out bf16[524288]
// schedule: elements threads=128 threads_per_row=32
// tiles [4,896]: row r*4 + g of 1, column (c*32 + t)*4 + v; 1 rows, 7 vectors of 4 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(128) matmul_0(const f32* __restrict__ partial, bf16* __restrict__ out) {
  const int t = int(threadIdx.x) % 32;
  const int g = int(threadIdx.x) / 32;
  const i32 program_0 = i32(blockIdx.x);
  const i32 first_column = program_0 * 896;
  wait_for_previous_kernel();

  Vec<f32, 4> running_sum[7];
#pragma unroll
  for (int c = 0; c < 7; ++c) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      running_sum[c].v[v] = 0.0f;
    }
  }

  for (i32 column = 0; column < 4; column += 4) {
    Vec<f32, 4> partial_in[7];
    const int partial_rows = end_inside(i64(column), 4, 4);
    const int partial_cols = end_inside(i64(first_column), 524288, 896);
    const f32* const partial_at = partial + first_column + column * 524288 + g * 524288 + t * 4;
#pragma unroll
    for (int c = 0; c < 7; ++c) {
      partial_in[c] = load_if<4, Cache::constant>(g < partial_rows && (c * 32 + t) * 4 < partial_cols, partial_at + c * 128, f32(0.0f));
    }
#pragma unroll
    for (int c = 0; c < 7; ++c) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        running_sum[c].v[v] = running_sum[c].v[v] + partial_in[c].v[v];
      }
    }
  }

  Vec<f32, 4> sum_of_running_sum[7];
#pragma unroll
  for (int c = 0; c < 7; ++c) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      sum_of_running_sum[c].v[v] = Sum::identity<f32>();
    }
  }
#pragma unroll
  for (int c = 0; c < 7; ++c) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      sum_of_running_sum[c].v[v] += running_sum[c].v[v];
    }
  }
  reduce_groups<Sum, 32, 4, 7>(sum_of_running_sum, shared_memory<f32>());

  const int out_cols = end_inside(i64(first_column), 524288, 896);
  bf16* const out_at = out + first_column + t * 4;
#pragma unroll
  for (int c = 0; c < 7; ++c) {
    Vec<f32, 4> out_out;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      out_out.v[v] = sum_of_running_sum[c].v[v];
    }
    store_if(g == 0 && (c * 32 + t) * 4 < out_cols, out_at + c * 128, from_f32<bf16>(out_out));
  }
}

}  // namespace tw
