// 1 / (1 + e^-x) of f32 lanes.
#pragma once
#include "tw_cpu/exp.h"

namespace tw {

// With e = e^-|x| ≤ 1: 1/(1+e) for x ≥ 0, e/(1+e) below: nothing overflows, small results keep their digits.
TW_INLINE vf32 sigmoid(vf32 x) {
  const vf32 e = exp(-abs(x));
  const vf32 sum = e + 1.f;
#ifdef TW_AVX512
  // Newton's step doubles the 14 bits of the estimate; the division would take longer than the exponential.
  const vf32 guess = (vf32)__builtin_ia32_rcp14ps512_mask(sum, sum, (u16)-1);
  const vf32 lost = (1.f - sum) + e;  // exact: sum + lost = 1 + e
  const vf32 inverse = fma(fma(-lost, guess, fma(-sum, guess, vf32(1.f))), guess, guess);
#else
  const vf32 inverse = 1.f / sum;
#endif
  return inverse * (x < vf32(0.f) ? e : vf32(1.f));
}

}  // namespace tw
