// transpose: x f32[8192,8192] -> y f32[8192,8192]
// schedule: elements threads=256 threads_per_row=16
// tiles [64,64]: row r*16 + g of 4, column (c*16 + t)*4 + v; 4 rows, 1 vectors of 4 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256) transpose(const f32* __restrict__ x, f32* __restrict__ y) {
  const int t = int(threadIdx.x) % 16;
  const int g = int(threadIdx.x) / 16;
  const i32 program = i32(blockIdx.x);
  const i32 program_0 = program % 128;
  const i32 program_1 = program / 128;
  const i32 index = program_0 * 64;
  const i32 index_2 = program_1 * 64;
  wait_for_previous_kernel();

  Vec<f32, 4> x_in[4];
  const f32* const x_at = x + index_2 * 8192 + index + g * 8192 + t * 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    x_in[r] = load<4, Cache::constant>(x_at + r * 131072);
  }

  Vec<f32, 4> transposed_x[4];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      shared_memory<f32>()[(r * 16 + g) * 65 + t * 4 + v] = x_in[r].v[v];
    }
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      transposed_x[r].v[v] = shared_memory<f32>()[(t * 4 + v) * 65 + r * 16 + g];
    }
  }

  f32* const y_at = y + index * 8192 + index_2 + g * 8192 + t * 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    store(y_at + r * 131072, transposed_x[r]);
  }
}

}  // namespace tw
