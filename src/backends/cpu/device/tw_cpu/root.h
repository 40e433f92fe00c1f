// Square root and its inverse, of f32 and f64 lanes.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

template <class V>
TW_INLINE V sqrt(V x) {
  return __builtin_elementwise_sqrt(x);
}
TW_INLINE vf64 rsqrt(vf64 x) { return 1.0 / sqrt(x); }

TW_INLINE vf32 rsqrt(vf32 x) {
#ifdef TW_AVX512
  // One Newton step from 14 bits; where it meets infinity · 0 (x is 0 or infinite) the estimate is exact
  // already.
  const vf32 guess = (vf32)__builtin_ia32_rsqrt14ps512_mask(x, x, (u16)-1);
  const vf32 error = fma(-(x * guess), guess, vf32(1.f));
  const vf32 better = fma(guess * 0.5f, error, guess);
  return error == error ? better : guess;
#else
  return 1.f / sqrt(x);
#endif
}

}  // namespace tw
