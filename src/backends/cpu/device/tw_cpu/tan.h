// Tangent of f32 lanes.
#pragma once
#include "tw_cpu/trig.h"

extern "C" float tanf(float);

namespace tw {

// |x| = n π/2 + r: tan r for even n, -1 / tan r for odd n, where tan r is kept as a sum of two f32.
TW_INLINE vf32 tan(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-1f), vf32(0x1.8p23f));
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f, 0.5f);
  const vf32 square = r * r;
  const vf32 rest = r * square *
                    polynomial(square, vf32(0.33333352f), 0.13332562f, 0.054072566f, 0.021212468f,
                               0.011025426f, -0.0001600605f, 0.004503236f);
  const vf32 tangent = r + rest, lost = (r - tangent) + rest;
  const vf32 guess = -1.f / tangent;
  const vf32 inverse = fma(guess, fma(guess, lost, fma(guess, tangent, vf32(1.f))), guess);
  const vf32 result = (bits_as<vi32>(shifted) << 31) < 0 ? inverse : tangent;
  const vf32 with_its_sign = bits_as<vf32>(bits_as<vi32>(result) ^ (bits_as<vi32>(x) & kSignBit));
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<tanf>(x, with_its_sign) : with_its_sign;
}

}  // namespace tw
