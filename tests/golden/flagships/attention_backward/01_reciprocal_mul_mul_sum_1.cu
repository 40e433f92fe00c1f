// elements threads=256 threads_per_row=16; predicted 17.7 us
// reciprocal_mul_mul_sum_1: eq_out bool[65536], where_out_1 f32[65536], matmul_out f32[65536,128], of bf16[65536,128] -> where_out f32[65536], mul_out bf16[65536,128]
// schedule: elements threads=256 threads_per_row=16
// tiles [32,128]: row r*16 + g of 2, column (c*16 + t)*8 + v; 2 rows, 1 vectors of 8 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256) reciprocal_mul_mul_sum_1(f32* __restrict__ where_out, const bool* __restrict__ eq_out, const f32* __restrict__ where_out_1, const f32* __restrict__ matmul_out, const bf16* __restrict__ of, bf16* __restrict__ mul_out) {
  const int t = int(threadIdx.x) % 16;
  const int g = int(threadIdx.x) / 16;
  const i32 program_0 = i32(blockIdx.x);
  const i32 first_row = program_0 * 32;
  wait_for_previous_kernel();

  Vec<f32, 8> matmul_out_in[2];
  const f32* const matmul_out_at = matmul_out + first_row * 128 + g * 128 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    matmul_out_in[r] = load<8, Cache::constant>(matmul_out_at + r * 2048);
  }
  f32 where_out_1_in[2];
  const f32* const where_out_1_at = where_out_1 + first_row + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    where_out_1_in[r] = load<1, Cache::constant>(where_out_1_at + r * 16).v[0];
  }
  Vec<bf16, 8> of_in[2];
  const bf16* const of_at = of + first_row * 128 + g * 128 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    of_in[r] = load<8, Cache::constant>(of_at + r * 2048);
  }
  bf16* const mul_out_at = mul_out + first_row * 128 + g * 128 + t * 8;
  f32 sum_of_matmul_out[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum_of_matmul_out[r] = Sum::identity<f32>();
    const f32 reciprocal_where_out_1 = reciprocal(where_out_1_in[r]);
    const Vec<f32, 8> of_in_f32 = to_f32(of_in[r]);
    Vec<f32, 8> mul_out_out;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const f32 product = reciprocal_where_out_1 * of_in_f32.v[v];
      sum_of_matmul_out[r] += matmul_out_in[r].v[v] * product;
      mul_out_out.v[v] = product;
    }
    store(mul_out_at + r * 2048, from_f32<bf16>(mul_out_out));
  }
  reduce_lanes<Sum, 16>(sum_of_matmul_out);

  bool eq_out_in[2];
  const bool* const eq_out_at = eq_out + first_row + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    eq_out_in[r] = load<1, Cache::constant>(eq_out_at + r * 16).v[0];
  }
  f32 where_out_1_in_2[2];
  const f32* const where_out_1_at_2 = where_out_1 + first_row + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    where_out_1_in_2[r] = load<1, Cache::constant>(where_out_1_at_2 + r * 16).v[0];
  }
  f32* const where_out_at = where_out + first_row + g;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (t == 0) store(where_out_at + r * 16, Vec<f32, 1>{{f32(eq_out_in[r] ? 0.0f : -(reciprocal(where_out_1_in_2[r]) * sum_of_matmul_out[r]))}});
  }
}

}  // namespace tw
