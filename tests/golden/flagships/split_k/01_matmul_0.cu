// elements threads=256 threads_per_row=256; predicted 3.65 us
// matmul_0: partial f32[524288,4] -> out bf16[524288]
// schedule: elements threads=256 threads_per_row=256
// tiles [4,896]: row r, column (c*256 + t)*4 + v; 4 rows, 1 vectors of 4 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256) matmul_0(const f32* __restrict__ partial, bf16* __restrict__ out) {
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  const i32 first_column = program_0 * 896;
  wait_for_previous_kernel();

  Vec<f32, 4> running_sum;
#pragma unroll
  for (int r = 0; r < 1; ++r) {
    if (t * 4 < 896) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        running_sum.v[v] = 0.0f;
      }
    }
  }

  for (i32 column = 0; column < 4; column += 4) {
    Vec<f32, 4> partial_in[4];
    const int partial_rows = end_inside(i64(column), 4, 4);
    const int partial_cols = end_inside(i64(first_column), 524288, 896);
    const f32* const partial_at = partial + first_column + column * 524288 + t * 4;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      partial_in[r] = load_if<4, Cache::constant>(r < partial_rows && t * 4 < partial_cols, partial_at + r * 524288, f32(0.0f));
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (t * 4 < 896) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          running_sum.v[v] = running_sum.v[v] + partial_in[r].v[v];
        }
      }
    }
  }

  Vec<f32, 4> sum_of_running_sum;
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    sum_of_running_sum.v[v] = Sum::identity<f32>();
  }
#pragma unroll
  for (int r = 0; r < 1; ++r) {
    if (t * 4 < 896) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum_of_running_sum.v[v] += running_sum.v[v];
      }
    }
  }

  const int out_cols = end_inside(i64(first_column), 524288, 896);
  bf16* const out_at = out + first_column + t * 4;
  if (t * 4 < 896) {
    Vec<f32, 4> out_out;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      out_out.v[v] = sum_of_running_sum.v[v];
    }
    store_if(t * 4 < out_cols, out_at, from_f32<bf16>(out_out));
  }
}

}  // namespace tw
