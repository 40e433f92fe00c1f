// e^x of f32 lanes. Polynomials: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/lookup.h"
#include "tw_cpu/scale.h"

namespace tw {

#ifdef TW_AVX512

// 2^(k/16), rounded.
alignas(64) static constexpr f32 kSixteenthPowers[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};

// x = (k/16) ln 2 + r, |r| ≤ ln(2)/32: 2^(k/16) from a table in one register, e^r by a cubic (relative error
// 2^-29). Only r is clamped: where x is beyond ±104 it means nothing, and scaling by n alone gives 0,
// infinity or NaN. Zero in lanes that are not among the mask's bits.
TW_INLINE vf32 exp_of_lanes(vf32 x, u16 bits) {
  const vf32 shifted = mad(x, vf32(kLog2E), vf32(kRoundToWhole / 16));
  const vf32 n = shifted - kRoundToWhole / 16;
  const vf32 r = clamp_magnitude(mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), x)), vf32(0.03f));
  const vf32 power = lookup16(kSixteenthPowers, bits_as<vi32>(shifted));
  const vf32 q = polynomial(r, vf32(1.f), 0.5000162f, 0.16666724f);
  return scalef(mad(power * r, q, power), n, bits);
}
TW_INLINE vf32 exp(vf32 x) { return exp_of_lanes(x, (u16)-1); }

#else

// x = n ln 2 + r: e^r to relative error 2^-28, 2^n last so that a subnormal result rounds once. Beyond the
// clamps the results are 0 and infinity already.
TW_INLINE vf32 exp(vf32 x) {
  x = at_least(at_most(x, vf32(90.f)), vf32(-105.f));
  const vf32 n = mad(x, vf32(kLog2E), vf32(kRoundToWhole)) - kRoundToWhole;
  const vf32 r = mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), x));
  return scale_by_power_of_two(
      polynomial(r, vf32(1.f), 1.f, 0.49999994f, 0.1666652f, 0.041668233f, 0.008368816f, 0.0013823832f), n);
}

#endif

}  // namespace tw
