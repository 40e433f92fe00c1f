// Powers of two and ln 2, shared by the exponentials.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// Adding it to |x| < 2^22 rounds x to a whole number and leaves that in the low bits of the sum.
constexpr f32 kRoundToWhole = 0x1.8p23f;
constexpr f32 kLog2E = 0x1.715476p+0f;
// ln 2 in two parts: the first has 12 bits, so that its product with n is exact.
constexpr f32 kLn2High = 0x1.62ep-1f, kLn2Low = 0x1.0bfbe8p-15f;

#ifdef TW_AVX512
// x · 2^floor(n) for any n, infinite ones too; zero in lanes that are not among the mask's bits.
TW_INLINE vf32 scalef(vf32 x, vf32 n, u16 bits = (u16)-1) {
  return (vf32)__builtin_ia32_scalefps512_mask(x, n, vf32(0.f), bits, 4);
}
// The sign of x, and its magnitude or the limit's, whichever is smaller; the limit where x is NaN.
TW_INLINE vf32 clamp_magnitude(vf32 x, vf32 limit) {
  return (vf32)__builtin_ia32_rangeps512_mask(x, limit, /*least magnitude, sign of x*/ 2, x, (u16)-1, 4);
}
#else
// x · 2^n for whole n, |n| ≤ 250, with one rounding where the result is subnormal. In two steps, as 2^n
// itself may be out of range. The bits of a sum hold n, a NaN's too: no conversion is undefined.
TW_INLINE vf32 scale_by_power_of_two(vf32 x, vf32 n) {
  const vi32 whole = bits_as<vi32>(n + kRoundToWhole) - __builtin_bit_cast(i32, kRoundToWhole),
             half = whole >> 1;
  return x * bits_as<vf32>((half + 127) << 23) * bits_as<vf32>((whole - half + 127) << 23);
}
#endif

}  // namespace tw
