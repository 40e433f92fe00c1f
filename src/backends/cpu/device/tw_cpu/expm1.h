// e^x - 1 of f32 lanes. Polynomial: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/scale.h"

namespace tw {

// x = n ln 2 + r: 2^n (e^r - 1) + (2^n - 1), halved until the end because 2^128 is out of range. Nothing
// cancels: for n = 1 and -1 the sum's magnitude is at least 0.29.
TW_INLINE vf32 expm1(vf32 x) {
  const vf32 clamped = at_least(at_most(x, vf32(89.f)), vf32(-18.f));
  const vf32 shifted = mad(clamped, vf32(kLog2E), vf32(kRoundToWhole));
  const vf32 n = shifted - kRoundToWhole;
  const vf32 r = mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), clamped));
  const vf32 q = polynomial(r, vf32(0.49999997f), 0.16666543f, 0.041667502f, 0.008366543f, 0.001386457f);
  const vf32 p = mad(r * r, q, r);
  const vf32 half = bits_as<vf32>((bits_as<vi32>(shifted) + 126) << 23);  // 2^(n-1)
  return with_sign(2.f * mad(half, p, half - 0.5f), x);
}

}  // namespace tw
