// f16, bf16, f8e4m3, f8e5m2 from and to f32 lanes: to nearest, ties to even; the 8-bit types saturate, NaN
// keeps its sign (and its leading payload bits where the type has room).
#pragma once
#include "tw_cpu/core.h"

namespace tw {

TW_INLINE vf32 bf16_to_f32(vu16 x) { return bits_as<vf32>(convert<vu32>(x) << 16); }

TW_INLINE vu16 f32_to_bf16(vf32 x) {
  const vu32 bits = bits_as<vu32>(x);
  // Adds half of the last place kept, less one unit where that place is even: ties then stay.
  const vu32 rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return convert<vu16>((x == x ? rounded : (bits | 0x400000)) >> 16);
}

// A narrow float's code from |x| ≤ its largest value: `mantissa` bits kept, exponents below `smallest`
// subnormal.
template <int Mantissa, int Smallest>
TW_INLINE vu32 narrow_code(vf32 magnitude) {
  constexpr int kDropped = 23 - Mantissa;
  const vu32 bits = bits_as<vu32>(magnitude);
  const vu32 normal = ((bits + ((1u << (kDropped - 1)) - 1) + ((bits >> kDropped) & 1)) >> kDropped) -
                      ((u32)(Smallest + 126) << Mantissa);
  // Adding a power of two whose last place is the smallest subnormal rounds to that place.
  constexpr u32 kPower = (u32)(Smallest + 127 + kDropped) << 23;
  const vu32 subnormal = bits_as<vu32>(magnitude + __builtin_bit_cast(f32, kPower)) - kPower;
  return bits < ((u32)(Smallest + 127) << 23) ? subnormal : normal;
}

#if defined(__F16C__) || defined(TW_AVX512)
typedef vec<_Float16> vf16;
TW_INLINE vf32 f16_to_f32(vu16 x) { return convert<vf32>(bits_as<vf16>(x)); }
TW_INLINE vu16 f32_to_f16(vf32 x) { return bits_as<vu16>(convert<vf16>(x)); }
#else
TW_INLINE vf32 f16_to_f32(vu16 x) {
  const vu32 code = convert<vu32>(x), magnitude = code & 0x7fff;
  const vu32 normal = (magnitude << 13) + (112u << 23);
  const vf32 subnormal = bits_as<vf32>((magnitude << 13) + (113u << 23)) - 0x1p-14f;
  vu32 bits = magnitude < 0x400u ? bits_as<vu32>(subnormal) : normal;
  bits = magnitude >= 0x7c00u ? normal + (112u << 23) : bits;
  return bits_as<vf32>(bits | ((code & 0x8000) << 16));
}
TW_INLINE vu16 f32_to_f16(vf32 x) {
  const vu32 bits = bits_as<vu32>(x), sign = (bits >> 16) & 0x8000;
  const vf32 magnitude = abs(x);
  vu32 code = narrow_code<10, -14>(magnitude);
  code = magnitude >= vf32(65520.f) ? vu32(0x7c00) : code;
  code = x != x ? (0x7e00 | ((bits >> 13) & 0x3ff)) : code;
  return convert<vu16>(code | sign);
}
#endif

TW_INLINE vu8 f32_to_f8e4m3(vf32 x) {
  const vu32 sign = (bits_as<vu32>(x) >> 24) & 0x80;
  const vu32 code = narrow_code<3, -6>(at_most(abs(x), vf32(448.f)));
  return convert<vu8>((x == x ? code : vu32(0x7f)) | sign);
}
TW_INLINE vf32 f8e4m3_to_f32(vu8 x) {
  const vu32 code = convert<vu32>(x), magnitude = code & 0x7f;
  const vu32 normal = (magnitude << 20) + (120u << 23);
  const vf32 subnormal = bits_as<vf32>((magnitude << 20) + (121u << 23)) - 0x1p-6f;
  vu32 bits = magnitude < 8u ? bits_as<vu32>(subnormal) : normal;
  bits = magnitude == 0x7fu ? vu32(0x7fc00000) : bits;
  return bits_as<vf32>(bits | ((code & 0x80) << 24));
}

TW_INLINE vu8 f32_to_f8e5m2(vf32 x) {
  const vu32 bits = bits_as<vu32>(x), sign = (bits >> 24) & 0x80;
  const vu32 code = narrow_code<2, -14>(at_most(abs(x), vf32(57344.f)));
  return convert<vu8>((x == x ? code : (0x7e | ((bits >> 21) & 3))) | sign);
}
// Its codes are the leading halves of f16's.
TW_INLINE vf32 f8e5m2_to_f32(vu8 x) { return f16_to_f32(convert<vu16>(x) << 8); }

// f64 to f32, inexact results to the neighbour whose last bit is odd: rounding that once more to a type of at
// most 22 mantissa bits gives what rounding the f64 at once would.
TW_INLINE vf32 f64_to_f32_odd(vf64 x) {
  const vf32 nearest = convert<vf32>(x);
  const vf64 back = convert<vf64>(nearest);
  const vmask inexact = ne(back, x) & eq(x, x);
  const vmask outward = lt(bits_as<vf64>(bits_as<vi64>(x) & 0x7fffffffffffffff),
                           bits_as<vf64>(bits_as<vi64>(back) & 0x7fffffffffffffff));
  const vi32 bits = bits_as<vi32>(nearest), even = (bits & 1) - 1;
  return bits_as<vf32>(bits + select(inexact & even, select(outward, vi32(-1), vi32(1)), vi32(0)));
}

}  // namespace tw
