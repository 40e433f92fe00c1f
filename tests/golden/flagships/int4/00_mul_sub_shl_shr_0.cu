// elements threads=64 threads_per_row=64 streaming_stores=true; predicted 14.5 us
// mul_sub_shl_shr_0: w i8[4096,2048] -> t18 bf16[4096,2,2048]
// schedule: elements threads=64 threads_per_row=64 streaming_stores=true
// tiles [1,1024]: column (c*64 + t)*16 + v; 1 rows, 1 vectors of 16 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/bytes.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(64) mul_sub_shl_shr_0(bf16* __restrict__ t18, const i8* __restrict__ w) {
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  const i32 remainder = program_0 % 2;
  const i32 index = program_0 / 2;
  const i32 index_2 = remainder * 1024;
  const i32 remainder_2 = index % 2;
  const i32 index_3 = index / 2;
  const i32 index_4 = remainder_2 * (-4);
  const i32 index_5 = index_4 + 4;
  const i8 pid_i8 = cast<i8>(index_5);
  wait_for_previous_kernel();

  Vec<i8, 16> w_in;
  const i8* const w_at = w + index_3 * 2048 + index_2 + t * 16;
  w_in = load<16, Cache::stream_constant>(w_at);
  bf16* const t18_at = t18 + index_3 * 4096 + remainder_2 * 2048 + index_2 + t * 16;
  const Vec<f32, 16> w_bf16 = nibbles_to_f32(w_in, pid_i8);
  Vec<f32, 16> t18_out;
#pragma unroll
  for (int v = 0; v < 16; ++v) {
    t18_out.v[v] = w_bf16.v[v];
  }
  store<Cache::stream>(t18_at, from_f32<bf16>(t18_out));
}

}  // namespace tw
