// Natural logarithm of f32 lanes. Polynomial: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/split.h"

namespace tw {

// log(1+f) = f + f² P(f) to relative error 2^-27.5.
TW_INLINE vf32 log1p_tail(vf32 f) {
  return polynomial(f, vf32(-0.5f), 0.33333454f, -0.25000116f, 0.19990718f, -0.16646448f, 0.14478527f,
                    -0.13169388f, 0.10479882f, -0.04517996f);
}
// (f + f² P(f)) + e ln 2, ln 2 in two parts: e times the first is exact.
TW_INLINE vf32 log_of(Split s) {
  return mad(s.e, vf32(0x1.62ep-1f), s.f + mad(s.f * s.f, log1p_tail(s.f), s.e * 0x1.0bfbe8p-15f));
}

TW_INLINE vf32 log(vf32 x) { return log_of(split(x)); }

}  // namespace tw
