// sin, cos, tan of f32 lanes. Polynomials: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/core.h"

extern "C" {
float sinf(float);
float cosf(float);
float tanf(float);
}

namespace tw {

// Up to here n·π with three parts of π is good to the last bit; lanes beyond it go to the C library, one by one.
constexpr f32 kLargestReduced = 0x1p17f;

template <f32 (*Function)(f32)>
TW_COLD vf32 redo_large_lanes(vf32 x, vf32 result) {
  for (int lane = 0; lane < TW_LANES; ++lane)
    if (!(__builtin_fabsf(x[lane]) <= kLargestReduced)) result[lane] = Function(x[lane]);
  return result;
}

// x - n · unit · π; n · unit · the first part of π leaves an exact difference (Cody and Waite).
TW_INLINE vf32 subtract_pi(vf32 x, vf32 n, f32 unit) {
  return fma(n, vf32(unit * 0x1.ee59dap-49f),
             fma(n, vf32(unit * 0x1.777a5cp-24f), fma(n, vf32(unit * -0x1.921fb6p+1f), x)));
}

// sin on [-π/2, π/2] to relative error 2^-27; never beyond ±1, which rounding alone would allow.
TW_INLINE vf32 sin_polynomial(vf32 r) {
  const vf32 square = r * r;
  const vf32 p = polynomial(square, vf32(-0.1666666f), 0.0083330665f, -0.00019809435f, 2.6051127e-06f);
  return at_least(at_most(mad(r * square, p, r), vf32(1.f)), vf32(-1.f));
}

// |x| = n π + r: sin |x| = (-1)^n sin r. Of |x|, so that sin(-0) = -0.
TW_INLINE vf32 sin(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-2f), vf32(0x1.8p23f));  // the low bit is n's
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f, 1.f);
  const vi32 sign = (bits_as<vi32>(x) & kSignBit) ^ (bits_as<vi32>(shifted) << 31);
  const vf32 result = bits_as<vf32>(bits_as<vi32>(sin_polynomial(r)) ^ sign);
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<sinf>(x, result) : result;
}

// |x| = (n + 1/2) π + r: cos x = (-1)^(n+1) sin r.
TW_INLINE vf32 cos(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-2f), vf32(-0.5f)) + 0x1.8p23f;
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f + 0.5f, 1.f);
  const vf32 result = bits_as<vf32>(bits_as<vi32>(sin_polynomial(r)) ^ (~bits_as<vi32>(shifted) << 31));
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<cosf>(x, result) : result;
}

// |x| = n π/2 + r: tan r for even n, -1 / tan r for odd n, where tan r is kept as a sum of two f32.
TW_INLINE vf32 tan(vf32 x) {
  const vf32 magnitude = abs(x);
  const vf32 shifted = mad(magnitude, vf32(0x1.45f306p-1f), vf32(0x1.8p23f));
  const vf32 r = subtract_pi(magnitude, shifted - 0x1.8p23f, 0.5f);
  const vf32 square = r * r;
  const vf32 rest = r * square * polynomial(square, vf32(0.33333352f), 0.13332562f, 0.054072566f, 0.021212468f, 0.011025426f,
                                            -0.0001600605f, 0.004503236f);
  const vf32 tangent = r + rest, lost = (r - tangent) + rest;
  const vf32 guess = -1.f / tangent;
  const vf32 inverse = fma(guess, fma(guess, lost, fma(guess, tangent, vf32(1.f))), guess);
  const vf32 result = (bits_as<vi32>(shifted) << 31) < 0 ? inverse : tangent;
  const vf32 with_its_sign = bits_as<vf32>(bits_as<vi32>(result) ^ (bits_as<vi32>(x) & kSignBit));
  const vmask large = magnitude > vf32(kLargestReduced);
  return __builtin_expect(any(large), 0) ? redo_large_lanes<tanf>(x, with_its_sign) : with_its_sign;
}

}  // namespace tw
