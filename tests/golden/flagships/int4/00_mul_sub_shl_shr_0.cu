// elements threads=128 threads_per_row=32; predicted 13.3 us
// mul_sub_shl_shr_0: w i8[4096,2048] -> reshape_out bf16[4096,2,2048]
// schedule: elements threads=128 threads_per_row=32
// tiles [1,1024]: column (c*32 + t)*16 + v; 1 rows, 2 vectors of 16 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/bytes.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(128) mul_sub_shl_shr_0(bf16* __restrict__ reshape_out, const i8* __restrict__ w) {
  const int t = int(threadIdx.x) % 32;
  const i32 program = i32(blockIdx.x) * 4 + i32(threadIdx.x) / 32;
  if (program >= 16384) return;
  const i32 program_0 = program;
  const i32 index = program_0 / 2;
  const i32 first_column = program_0 % 2 * 1024;
  const i32 remainder = index % 2;
  const i32 index_2 = index / 2;
  const i32 index_3 = remainder * -4 + 4;
  const i8 pid_i8 = cast<i8>(index_3);
  wait_for_previous_kernel();

  Vec<i8, 16> w_in[2];
  const i8* const w_at = w + index_2 * 2048 + first_column + t * 16;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    w_in[c] = load<16, Cache::constant>(w_at + c * 512);
  }
  bf16* const reshape_out_at = reshape_out + index_2 * 4096 + remainder * 2048 + first_column + t * 16;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const Vec<f32, 16> w_bf16 = nibbles_to_f32(w_in[c], pid_i8);
    Vec<f32, 16> reshape_out_out;
#pragma unroll
    for (int v = 0; v < 16; ++v) {
      reshape_out_out.v[v] = w_bf16.v[v];
    }
    store(reshape_out_at + c * 512, from_f32<bf16>(reshape_out_out));
  }
}

}  // namespace tw
