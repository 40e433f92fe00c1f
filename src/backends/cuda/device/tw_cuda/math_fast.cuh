// Cheaper primitives for values that end in bf16 or fp8: relative error at most 2^-10, a quarter of bf16's
// unit in the last place at its worst. They bound the error of the one operation: a difference of nearly
// equal results (1 - tanh x for large x) shows it enlarged, which is for the caller to know. Those that end
// in ex2 give 0 below 2^-126; quotients and reciprocals hold over the whole range, as bf16 has f32's.
#pragma once

#include "tw_cuda/math.cuh"

namespace tw::fast {

namespace detail {
using tw::detail::rcp;
using tw::detail::scale_of_divisor;
TW_DEVICE float ex2(float x) {  // 2^-22
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TW_DEVICE float lg2(float x) {  // 2^-22 of the larger of 1 and the result
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
}  // namespace detail

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

TW_DEVICE float exp2(float x) { return detail::ex2(x); }
// -y · log2 e for exp2(x · log2 e + it). The largest numbers, which keep the maximum of nothing finite, stay
// finite: x of -inf beside them is 0, not NaN.
TW_DEVICE float exp_offset(float y) {
  constexpr float kMost = 3.40282347e38f;
  const float offset = y * -kLog2E;
  return fabsf(y) <= kMost ? fminf(fmaxf(offset, -kMost), kMost) : offset;
}
TW_DEVICE float exp(float x) { return detail::ex2(x * kLog2E); }  // the product is off by 2^-18 at |x| = 88
TW_DEVICE float reciprocal(float x) {                             // 2^-22
  const float s = detail::scale_of_divisor(x);
  return detail::rcp(x * s) * s;
}
TW_DEVICE float div(float a, float b) {  // 2^-21
  const float s = detail::scale_of_divisor(b);
  return a * s * detail::rcp(b * s);
}
TW_DEVICE float rsqrt(float x) { return rsqrtf(x); }  // the accurate one is as short
TW_DEVICE float sqrt(float x) {                       // 2^-23
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Near 1 the hardware's absolute error would be all of the result: a short series there.
TW_DEVICE float log2(float x) {
  const float t = x - 1.f;
  const float near = t * fmaf(t, fmaf(t, fmaf(t, -0.25f, 0.333333333f), -0.5f), 1.f) * kLog2E;
  return fabsf(t) < 0.0625f ? near : detail::lg2(x);
}
TW_DEVICE float log(float x) { return log2(x) * kLn2; }
// Absolute error 2^-22, relative 2^-17 near 0, where a short series stands in: for sums such as 1 + tanh x,
// which show an absolute error enlarged.
TW_DEVICE float tanh_sum(float x) {
  const float e = detail::ex2(fabsf(x) * (-2.f * kLog2E));
  const float far = (1.f - e) * detail::rcp(1.f + e);
  const float x2 = x * x;
  const float near = fmaf(x2 * x, fmaf(x2, 0.13333333f, -0.33333333f), x);
  return fabsf(x) < 0.125f ? near : copysignf(far, x);
}
// 1 + tanh x without its cancellation: 2^-21 for every x.
TW_DEVICE float one_plus_tanh(float x) { return 2.f * detail::rcp(1.f + detail::ex2(x * (-2.f * kLog2E))); }
TW_DEVICE float tanh(float x) {  // 2^-11
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Sigmoid without tanh, which keeps the relative error of the small side.
TW_DEVICE float sigmoid(float x) { return detail::rcp(1.f + detail::ex2(x * -kLog2E)); }

// Two terms each on [-π/4, π/4], fitted for relative error: 2^-19 and 2^-16.
TW_DEVICE float sin_poly(float r) {
  const float r2 = r * r;
  return r * fmaf(r2, fmaf(r2, 8.16323e-3f, -0.16663388f), 1.f);
}
TW_DEVICE float cos_poly(float r) {
  const float r2 = r * r;
  return fmaf(r2, fmaf(r2, 4.045807e-2f, -0.49976041f), 1.f);
}
// A kernel that wants several functions of one argument reduces it once and hands the result to each.
TW_DEVICE float sin(Reduced a) { return sin_in_quadrant(a.quadrant, sin_poly(a.rest), cos_poly(a.rest)); }
TW_DEVICE float cos(Reduced a) { return cos_in_quadrant(a.quadrant, sin_poly(a.rest), cos_poly(a.rest)); }
TW_DEVICE float sin(float x) { return fast::sin(reduce_quarter(x)); }
TW_DEVICE float cos(float x) { return fast::cos(reduce_quarter(x)); }

}  // namespace tw::fast
