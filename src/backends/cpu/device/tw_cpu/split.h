// A number as mantissa and exponent, shared by the logarithms.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// x = (1 + f) · 2^e with f in [-1/4, 1/2), so that a logarithm near 1 comes from f alone. f = 0 and e =
// ±infinity for x = 0 and infinity; f is NaN below 0 and for NaN.
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

}  // namespace tw
