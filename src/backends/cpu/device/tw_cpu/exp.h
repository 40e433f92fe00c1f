// exp, exp2, expm1 of f32 lanes. Polynomials: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// x · 2^n for whole n, |n| ≤ 250, with one rounding where the result is subnormal. In two steps, as 2^n itself may be
// out of range.
TW_INLINE vf32 scale_by_power_of_two(vf32 x, vf32 n) {
  const vi32 whole = convert<vi32>(n), half = whole >> 1;
  return x * bits_as<vf32>((half + 127) << 23) * bits_as<vf32>((whole - half + 127) << 23);
}

// Adding it to |x| < 2^22 rounds x to a whole number and leaves that in the low bits of the sum.
constexpr f32 kRoundToWhole = 0x1.8p23f;
constexpr f32 kLog2E = 0x1.715476p+0f;
// ln 2 in two parts: the first has 12 bits, so that its product with n is exact.
constexpr f32 kLn2High = 0x1.62ep-1f, kLn2Low = 0x1.0bfbe8p-15f;

#ifdef TW_AVX512

// x · 2^floor(n) for any n, infinite ones too.
TW_INLINE vf32 scalef(vf32 x, vf32 n) { return (vf32)__builtin_ia32_scalefps512_mask(x, n, x, (u16)-1, 4); }
// The sign of x, and its magnitude or the limit's, whichever is smaller; the limit where x is NaN.
TW_INLINE vf32 clamp_magnitude(vf32 x, vf32 limit) {
  return (vf32)__builtin_ia32_rangeps512_mask(x, limit, /*least magnitude, sign of x*/ 2, x, (u16)-1, 4);
}

// 2^(k/16), rounded.
alignas(64) static constexpr f32 kSixteenthPowers[16] = {
    0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};

// x = (k/16) ln 2 + r, |r| ≤ ln(2)/32: 2^(k/16) from a table in one register, e^r by a cubic (relative error 2^-29).
// Only r is clamped: where x is beyond ±104 it means nothing, and scaling by n alone gives 0, infinity or NaN.
TW_INLINE vf32 exp(vf32 x) {
  const vf32 shifted = mad(x, vf32(kLog2E), vf32(kRoundToWhole / 16));
  const vf32 n = shifted - kRoundToWhole / 16;
  const vf32 r = clamp_magnitude(mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), x)), vf32(0.03f));
  const vf32 power = lookup16(kSixteenthPowers, bits_as<vi32>(shifted));
  const vf32 q = polynomial(r, vf32(1.f), 0.5000162f, 0.16666724f);
  return scalef(mad(power * r, q, power), n);
}

// x = n + r: 2^r to relative error 2^-28.
TW_INLINE vf32 exp2(vf32 x) {
  const vf32 shifted = x + kRoundToWhole;
  const vf32 n = shifted - kRoundToWhole;
  const vf32 r = clamp_magnitude(x - n, vf32(0.5f));
  return scalef(polynomial(r, vf32(1.f), 0.6931472f, 0.24022645f, 0.055503584f, 0.009618827f, 0.0013391469f, 0.00015243766f), n);
}

#else

// x = n ln 2 + r: e^r to relative error 2^-28, 2^n last so that a subnormal result rounds once. Beyond the clamps the
// results are 0 and infinity already.
TW_INLINE vf32 exp(vf32 x) {
  x = at_least(at_most(x, vf32(90.f)), vf32(-105.f));
  const vf32 n = mad(x, vf32(kLog2E), vf32(kRoundToWhole)) - kRoundToWhole;
  const vf32 r = mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), x));
  return scale_by_power_of_two(polynomial(r, vf32(1.f), 1.f, 0.49999994f, 0.1666652f, 0.041668233f, 0.008368816f, 0.0013823832f), n);
}

TW_INLINE vf32 exp2(vf32 x) {
  x = at_least(at_most(x, vf32(130.f)), vf32(-151.f));
  const vf32 n = x + kRoundToWhole - kRoundToWhole;
  return scale_by_power_of_two(
      polynomial(x - n, vf32(1.f), 0.6931472f, 0.24022645f, 0.055503584f, 0.009618827f, 0.0013391469f, 0.00015243766f), n);
}

#endif

// x = n ln 2 + r: 2^n (e^r - 1) + (2^n - 1), halved until the end because 2^128 is out of range. Nothing cancels: for
// n = 1 and -1 the sum's magnitude is at least 0.29.
TW_INLINE vf32 expm1(vf32 x) {
  const vf32 clamped = at_least(at_most(x, vf32(89.f)), vf32(-18.f));
  const vf32 shifted = mad(clamped, vf32(kLog2E), vf32(kRoundToWhole));
  const vf32 n = shifted - kRoundToWhole;
  const vf32 r = mad(n, vf32(-kLn2Low), mad(n, vf32(-kLn2High), clamped));
  const vf32 q = polynomial(r, vf32(0.49999997f), 0.16666543f, 0.041667502f, 0.008366543f, 0.001386457f);
  const vf32 p = mad(r * r, q, r);
  const vf32 half = bits_as<vf32>((bits_as<vi32>(shifted) + 126) << 23);  // 2^(n-1)
  return with_sign(abs(2.f * mad(half, p, half - 0.5f)), x);
}

}  // namespace tw
