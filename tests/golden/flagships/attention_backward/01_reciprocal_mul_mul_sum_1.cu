// elements threads=256 threads_per_row=16; predicted 18.8 us
// reciprocal_mul_mul_sum_1: t31 bool[65536], t33 f32[65536], t29 f32[65536,128], of bf16[65536,128] -> t43 f32[65536], t45 bf16[65536,128]
// schedule: elements threads=256 threads_per_row=16
// tiles [32,128]: row r*16 + g of 2, column (c*16 + t)*8 + v; 2 rows, 1 vectors of 8 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256) reciprocal_mul_mul_sum_1(f32* __restrict__ t43, const bool* __restrict__ t31, const f32* __restrict__ t33, const f32* __restrict__ t29, const bf16* __restrict__ of, bf16* __restrict__ t45) {
  const int t = int(threadIdx.x) % 16;
  const int g = int(threadIdx.x) / 16;
  const i32 program_0 = i32(blockIdx.x);
  const i32 index = program_0 * 32;
  wait_for_previous_kernel();

  Vec<f32, 8> t29_in[2];
  const f32* const t29_at = t29 + index * 128 + g * 128 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    t29_in[r] = load<8, Cache::constant>(t29_at + r * 2048);
  }
  f32 t33_in[2];
  const f32* const t33_at = t33 + index + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    t33_in[r] = load<1, Cache::constant>(t33_at + r * 16).v[0];
  }
  Vec<bf16, 8> of_in[2];
  const bf16* const of_at = of + index * 128 + g * 128 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    of_in[r] = load<8, Cache::stream_constant>(of_at + r * 2048);
  }
  bf16* const t45_at = t45 + index * 128 + g * 128 + t * 8;
  f32 sum_of_t29[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum_of_t29[r] = Sum::identity<f32>();
    const f32 reciprocal_t33 = reciprocal(t33_in[r]);
    const Vec<f32, 8> of_in_f32 = to_f32(of_in[r]);
    Vec<f32, 8> t45_out;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const f32 product = reciprocal_t33 * of_in_f32.v[v];
      sum_of_t29[r] += t29_in[r].v[v] * product;
      t45_out.v[v] = product;
    }
    store(t45_at + r * 2048, from_f32<bf16>(t45_out));
  }
  reduce_lanes<Sum, 16>(sum_of_t29);

  bool t31_in[2];
  const bool* const t31_at = t31 + index + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    t31_in[r] = load<1, Cache::constant>(t31_at + r * 16).v[0];
  }
  f32 t33_in_2[2];
  const f32* const t33_at_2 = t33 + index + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    t33_in_2[r] = load<1, Cache::constant>(t33_at_2 + r * 16).v[0];
  }
  f32* const t43_at = t43 + index + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (t == 0) store(t43_at + r * 16, Vec<f32, 1>{{f32(t31_in[r] ? 0.0f : (-(reciprocal(t33_in_2[r]) * sum_of_t29[r])))}});
  }
}

}  // namespace tw
