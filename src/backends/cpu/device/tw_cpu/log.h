// log, log2, log1p of f32 lanes. Polynomials: minimax with f32 coefficients (Sollya's fpminimax).
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// x = (1 + f) · 2^e with f in [-1/4, 1/2), so that a logarithm near 1 comes from f alone. f = 0 and e = ±infinity for
// x = 0 and infinity; f is NaN below 0 and for NaN.
struct Split {
  vf32 f, e;
};

#ifdef TW_AVX512
TW_INLINE Split split(vf32 x) {
  // Mantissa in [3/4, 3/2), NaN below 0; the exponent is of a mantissa in [1, 2).
  const vf32 mantissa = (vf32)__builtin_ia32_getmantps512_mask(x, 11, x, (u16)-1, 4);
  const vf32 exponent = (vf32)__builtin_ia32_getexpps512_mask(x, x, (u16)-1, 4);
  return {mantissa - 1.f, mantissa < vf32(1.f) ? exponent + 1.f : exponent};
}
#else
TW_INLINE Split split(vf32 x) {
  constexpr i32 kThreeQuarters = 0x3f400000;
  const f32 infinity = __builtin_inff();
  const vmask subnormal = x < vf32(0x1p-126f);
  const vi32 bits = bits_as<vi32>(select(subnormal, x * 0x1p23f, x)) - kThreeQuarters;
  const vf32 f = bits_as<vf32>((bits & 0x7fffff) + kThreeQuarters) - 1.f;
  const vf32 e = convert<vf32>((bits >> 23) - (subnormal & 23));
  const vmask zero = x == vf32(0.f), infinite = x == vf32(infinity);
  const vmask valid = x >= vf32(0.f);
  return {select(valid, select(zero | infinite, vf32(0.f), f), vf32(__builtin_nanf(""))),
          select(zero, vf32(-infinity), select(infinite, vf32(infinity), e))};
}
#endif

// log(1+f) = f + f² P(f) to relative error 2^-27.5.
TW_INLINE vf32 log1p_tail(vf32 f) {
  return polynomial(f, vf32(-0.5f), 0.33333454f, -0.25000116f, 0.19990718f, -0.16646448f, 0.14478527f, -0.13169388f,
                    0.10479882f, -0.04517996f);
}
// (f + f² P(f)) + e ln 2, ln 2 in two parts: e times the first is exact.
TW_INLINE vf32 log_of(Split s) {
  return mad(s.e, vf32(0x1.62ep-1f), s.f + mad(s.f * s.f, log1p_tail(s.f), s.e * 0x1.0bfbe8p-15f));
}

TW_INLINE vf32 log(vf32 x) { return log_of(split(x)); }

// f log2(e) + f² P(f) + e; log2(e) in two parts.
TW_INLINE vf32 log2(vf32 x) {
  const Split s = split(x);
  const vf32 p = polynomial(s.f, vf32(-0.7213475f), 0.48090008f, -0.3606762f, 0.2884061f, -0.24014023f, 0.20884018f,
                            -0.1900958f, 0.15159753f, -0.06551869f);
  return fma(s.f, vf32(0x1.715476p+0f), s.f * mad(p, s.f, vf32(0x1.4ae0cp-26f))) + s.e;
}

// u = 1 + x rounded, c what the rounding lost (Knuth's TwoSum): log(u) with c carried into f.
TW_INLINE vf32 log1p(vf32 x) {
  const vf32 u = x + 1.f;
  const vf32 back = u - 1.f;
  const vf32 lost = (x - back) + (1.f - (u - back));
  Split s = split(u);
  const vi32 exponent = convert<vi32>(at_least(at_most(s.e, vf32(126.f)), vf32(-126.f)));
  s.f = mad(lost, bits_as<vf32>((127 - exponent) << 23), s.f);
  const vmask itself = (x == vf32(0.f)) | (x == vf32(__builtin_inff()));  // keeps -0; infinity lost to infinity - infinity
  return select(itself, x, log_of(s));
}

}  // namespace tw
