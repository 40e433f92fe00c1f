// elements threads=256 threads_per_row=128; predicted 4.58 us
// sum_mul_sub_mul_0: x bf16[2048,768], ln1w bf16[768], ln1b bf16[768] -> add_out bf16[2048,768]
// schedule: elements threads=256 threads_per_row=128
// tiles [4,768]: row r*2 + g of 2, column (c*128 + t)*8 + v; 2 rows, 1 vectors of 8 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(256) sum_mul_sub_mul_0(bf16* __restrict__ add_out, const bf16* __restrict__ x, const bf16* __restrict__ ln1w, const bf16* __restrict__ ln1b) {
  __shared__ f32 sum_of_x_parts[2][2][4];
  __shared__ f32 sum_of_x_2_parts[2][2][4];
  const int t = int(threadIdx.x) % 128;
  const int g = int(threadIdx.x) / 128;
  const i32 program_0 = i32(blockIdx.x);
  const i32 first_row = program_0 * 4;
  wait_for_previous_kernel();

  Vec<bf16, 8> x_in[2];
  const bf16* const x_at = x + first_row * 768 + g * 768 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    x_in[r] = load_if<8, Cache::constant>(t * 8 < 768, x_at + r * 1536, bf16{0x0});
  }
  f32 sum_of_x[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum_of_x[r] = Sum::identity<f32>();
    if (t * 8 < 768) {
      const Vec<f32, 8> x_in_f32 = to_f32(x_in[r]);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        sum_of_x[r] += x_in_f32.v[v];
      }
    }
  }
  reduce_lanes<Sum, 32>(sum_of_x);
  put_parts(sum_of_x_parts[g], sum_of_x);
  __syncthreads();
  take_parts<Sum>(sum_of_x, sum_of_x_parts[g]);

  f32 sum_of_x_2[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum_of_x_2[r] = Sum::identity<f32>();
    const f32 scaled_sum_of_x = sum_of_x[r] * 0.0013020834f;
    if (t * 8 < 768) {
      const Vec<f32, 8> x_in_f32 = to_f32(x_in[r]);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        const f32 difference = x_in_f32.v[v] - scaled_sum_of_x;
        sum_of_x_2[r] += difference * difference;
      }
    }
  }
  reduce_lanes<Sum, 32>(sum_of_x_2);
  put_parts(sum_of_x_2_parts[g], sum_of_x_2);
  __syncthreads();
  take_parts<Sum>(sum_of_x_2, sum_of_x_2_parts[g]);

  Vec<bf16, 8> ln1w_in;
  const bf16* const ln1w_at = ln1w + t * 8;
  ln1w_in = load_if<8, Cache::constant>(t * 8 < 768, ln1w_at, bf16{0x0});
  Vec<bf16, 8> ln1b_in;
  const bf16* const ln1b_at = ln1b + t * 8;
  ln1b_in = load_if<8, Cache::constant>(t * 8 < 768, ln1b_at, bf16{0x0});
  bf16* const add_out_at = add_out + first_row * 768 + g * 768 + t * 8;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const f32 scaled_sum_of_x = sum_of_x[r] * 0.0013020834f;
    const f32 scaled_sum_of_x_2 = sum_of_x_2[r] * 0.0013020834f;
    const f32 sum = scaled_sum_of_x_2 + 1e-05f;
    const f32 rsqrt_sum_of_x = fast::rsqrt(sum);
    if (t * 8 < 768) {
      const Vec<f32, 8> x_in_f32 = to_f32(x_in[r]);
      const Vec<f32, 8> ln1w_in_f32 = to_f32(ln1w_in);
      const Vec<f32, 8> ln1b_in_f32 = to_f32(ln1b_in);
      Vec<f32, 8> add_out_out;
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        const f32 sum_2 = (x_in_f32.v[v] - scaled_sum_of_x) * rsqrt_sum_of_x * ln1w_in_f32.v[v] + ln1b_in_f32.v[v];
        add_out_out.v[v] = sum_2;
      }
      store(add_out_at + r * 1536, from_f32<bf16>(add_out_out));
    }
  }
}

}  // namespace tw
