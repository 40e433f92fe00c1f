// elements threads=128 threads_per_row=4; predicted 9.61 us
// cast_0: b f8e4m3[4096,4096] -> transpose_out f8e4m3[4096,4096]
// schedule: elements threads=128 threads_per_row=4
// tiles [64,64]: row r*32 + g of 2, column (c*4 + t)*16 + v; 2 rows, 1 vectors of 16 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(128) cast_0(f8e4m3* __restrict__ transpose_out, const f8e4m3* __restrict__ b) {
  const int t = int(threadIdx.x) % 4;
  const int g = int(threadIdx.x) / 4;
  const i32 program_0 = i32(blockIdx.x);
  const i32 first_column = program_0 % 64 * 64;
  const i32 first_row = program_0 / 64 * 64;
  wait_for_previous_kernel();

  Vec<f8e4m3, 16> b_in[2];
  const f8e4m3* const b_at = b + first_row + first_column * 4096 + g * 4096 + t * 16;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    b_in[r] = load<16, Cache::constant>(b_at + r * 131072);
  }

  Vec<f8e4m3, 16> transposed_b[2];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int v = 0; v < 16; ++v) {
      shared_memory<f8e4m3>()[(r * 32 + g) * 68 + t * 16 + v] = b_in[r].v[v];
    }
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int v = 0; v < 16; ++v) {
      transposed_b[r].v[v] = shared_memory<f8e4m3>()[(t * 16 + v) * 68 + r * 32 + g];
    }
  }

  f8e4m3* const transpose_out_at = transpose_out + first_row * 4096 + first_column + g * 4096 + t * 16;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    store(transpose_out_at + r * 131072, transposed_b[r]);
  }
}

}  // namespace tw
