// 1 / (1 + e^-x) of f32 lanes.
#pragma once
#include "tw_cpu/exp.h"

namespace tw {

// 1/(1+e) for x ≥ 0, e/(1+e) below, of e = e^-|x| ≤ 1: nothing overflows, small results keep their digits.
// The division has a unit of its own, which the exponential leaves idle: faster than an estimate with
// Newton's step.
TW_INLINE vf32 sigmoid(vf32 x) {
  const vf32 e = exp(-abs(x));
  return (x < vf32(0.f) ? e : vf32(1.f)) / (e + 1.f);
}
// 1 + tanh(x), as in gelu: for negative x of more digits than the sum, and in two thirds of its time. Where
// the exponential overflows the result is below 2^-126, which the sum could not hold either.
TW_INLINE vf32 one_plus_tanh(vf32 x) { return 2.f / (exp(x * -2.f) + 1.f); }

}  // namespace tw
