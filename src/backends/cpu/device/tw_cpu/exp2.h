// 2^x of f32 lanes. Polynomial: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/scale.h"

namespace tw {

#ifdef TW_AVX512

// x = n + r: 2^r to relative error 2^-28.
TW_INLINE vf32 exp2(vf32 x) {
  const vf32 shifted = x + kRoundToWhole;
  const vf32 n = shifted - kRoundToWhole;
  const vf32 r = clamp_magnitude(x - n, vf32(0.5f));
  return scalef(polynomial(r, vf32(1.f), 0.6931472f, 0.24022645f, 0.055503584f, 0.009618827f, 0.0013391469f,
                           0.00015243766f),
                n);
}

#else

// x = n + r as well. Beyond the clamps the results are 0 and infinity already.
TW_INLINE vf32 exp2(vf32 x) {
  x = at_least(at_most(x, vf32(130.f)), vf32(-151.f));
  const vf32 n = x + kRoundToWhole - kRoundToWhole;
  return scale_by_power_of_two(polynomial(x - n, vf32(1.f), 0.6931472f, 0.24022645f, 0.055503584f,
                                          0.009618827f, 0.0013391469f, 0.00015243766f),
                               n);
}

#endif

}  // namespace tw
