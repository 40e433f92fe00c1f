// Cosine of f32 lanes.
#pragma once
#include "tw_cpu/trig.h"

extern "C" float cosf(float);

namespace tw {

// |x| = (n + 1/2) π + r: cos x = (-1)^(n+1) sin r.
TW_INLINE vf32 cos(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-2f), vf32(-0.5f)) + 0x1.8p23f;
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f + 0.5f, 1.f);
  const vf32 result = sin_flipped(r, ~bits_as<vi32>(shifted) << 31);
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<cosf>(x, result) : result;
}

}  // namespace tw
