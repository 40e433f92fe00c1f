// Sine of f32 lanes.
#pragma once
#include "tw_cpu/trig.h"

extern "C" float sinf(float);

namespace tw {

// |x| = n π + r: sin |x| = (-1)^n sin r. Of |x|, so that sin(-0) = -0.
TW_INLINE vf32 sin(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-2f), vf32(0x1.8p23f));  // the low bit is n's
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f, 1.f);
  const vi32 sign = (bits_as<vi32>(x) & kSignBit) ^ (bits_as<vi32>(shifted) << 31);
  const vf32 result = sin_flipped(r, sign);
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<sinf>(x, result) : result;
}

}  // namespace tw
