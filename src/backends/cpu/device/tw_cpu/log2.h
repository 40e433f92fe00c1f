// Logarithm to base 2 of f32 lanes. Polynomial: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/split.h"

namespace tw {

// f log2(e) + f² P(f) + e; log2(e) in two parts.
TW_INLINE vf32 log2(vf32 x) {
  const Split s = split(x);
  const vf32 p = polynomial(s.f, vf32(-0.7213475f), 0.48090008f, -0.3606762f, 0.2884061f, -0.24014023f,
                            0.20884018f, -0.1900958f, 0.15159753f, -0.06551869f);
  return fma(s.f, vf32(0x1.715476p+0f), s.f * mad(p, s.f, vf32(0x1.4ae0cp-26f))) + s.e;
}

}  // namespace tw
