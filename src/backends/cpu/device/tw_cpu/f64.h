// Math of f64 lanes: the C library's functions, lane by lane.
#pragma once
#include "tw_cpu/core.h"

extern "C" {
double exp(double);
double exp2(double);
double expm1(double);
double log(double);
double log2(double);
double log1p(double);
double sin(double);
double cos(double);
double tan(double);
double tanh(double);
double erf(double);
double pow(double, double);
double atan2(double, double);
double fma(double, double, double);
}

namespace tw {

template <f64 (*Function)(f64)>
static __attribute__((noinline)) void each_lane(vf64& x) {
#pragma clang loop unroll(disable)
  for (int lane = 0; lane < TW_LANES; ++lane) x[lane] = Function(x[lane]);
}
template <f64 (*Function)(f64)>
TW_INLINE vf64 by_lane(vf64 x) {
  each_lane<Function>(x);
  return x;
}
template <f64 (*Function)(f64, f64)>
static __attribute__((noinline)) void each_lane(vf64& x, const vf64& y) {
#pragma clang loop unroll(disable)
  for (int lane = 0; lane < TW_LANES; ++lane) x[lane] = Function(x[lane], y[lane]);
}

TW_INLINE vf64 exp(vf64 x) { return by_lane<::exp>(x); }
TW_INLINE vf64 exp2(vf64 x) { return by_lane<::exp2>(x); }
TW_INLINE vf64 expm1(vf64 x) { return by_lane<::expm1>(x); }
TW_INLINE vf64 log(vf64 x) { return by_lane<::log>(x); }
TW_INLINE vf64 log2(vf64 x) { return by_lane<::log2>(x); }
TW_INLINE vf64 log1p(vf64 x) { return by_lane<::log1p>(x); }
TW_INLINE vf64 sin(vf64 x) { return by_lane<::sin>(x); }
TW_INLINE vf64 cos(vf64 x) { return by_lane<::cos>(x); }
TW_INLINE vf64 tan(vf64 x) { return by_lane<::tan>(x); }
TW_INLINE vf64 tanh(vf64 x) { return by_lane<::tanh>(x); }
TW_INLINE vf64 erf(vf64 x) { return by_lane<::erf>(x); }
TW_INLINE vf64 pow(vf64 x, vf64 y) {
  each_lane<::pow>(x, y);
  return x;
}
TW_INLINE vf64 atan2(vf64 y, vf64 x) {
  each_lane<::atan2>(y, x);
  return y;
}
// a*b + c, rounded once.
TW_INLINE vf64 fma(vf64 a, vf64 b, vf64 c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  for (int lane = 0; lane < TW_LANES; ++lane) a[lane] = ::fma(a[lane], b[lane], c[lane]);
  return a;
#endif
}
TW_INLINE vf64 sigmoid(vf64 x) {
  const vf64 e = exp(x < vf64(0.0) ? x : -x);
  return (x < vf64(0.0) ? e : vf64(1.0)) / (1.0 + e);
}

}  // namespace tw
