// elu: x f32[1000] -> y f32[1000]
// schedule: elements threads=128 threads_per_row=128
// tiles [1,1024]: column (c*128 + t)*4 + v; 1 rows, 2 vectors of 4 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(128) elu(const f32* __restrict__ x, f32* __restrict__ y) {
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  const i32 index = program_0 * 1024;
  wait_for_previous_kernel();

  Vec<f32, 4> x_in[2];
  const int x_cols = end_inside(i64(index), 1000, 1024);
  const f32* const x_at = x + index + t * 4;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    x_in[c] = load_if<4, Cache::constant>((c * 128 + t) * 4 < x_cols, x_at + c * 512, f32(0.0f));
  }
  const int y_cols = end_inside(i64(index), 1000, 1024);
  f32* const y_at = y + index + t * 4;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    Vec<f32, 4> y_out;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      y_out.v[v] = x_in[c].v[v] > 0.0f ? x_in[c].v[v] : exp(x_in[c].v[v]) - 1.0f;
    }
    store_if((c * 128 + t) * 4 < y_cols, y_at + c * 512, y_out);
  }
}

}  // namespace tw
