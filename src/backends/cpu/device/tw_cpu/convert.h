// Casts between element types that saturate: float to integer.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// Truncates; beyond the type's range its limit, NaN → 0.
TW_INLINE vi32 to_i32(vf32 x) {
  const vf32 number = number_or_zero(x);
  const vi32 inside = convert<vi32>(at_least(at_most(number, vf32(2147483520.f)), vf32(-2147483648.f)));
  return select(number >= vf32(2147483648.f), vi32(2147483647), inside);
}
TW_INLINE vi32 to_i32(vf64 x) {
  return convert<vi32>(at_least(at_most(number_or_zero(x), vf64(2147483647.0)), vf64(-2147483648.0)));
}
TW_INLINE vi64 to_i64(vf64 x) {
  const vf64 number = number_or_zero(x);
  const vi64 inside = convert<vi64>(at_least(at_most(number, vf64(0x1.fffffffffffffp62)), vf64(-0x1p63)));
  return number >= vf64(0x1p63) ? vi64(0x7fffffffffffffff) : inside;
}
TW_INLINE vi64 to_i64(vf32 x) { return to_i64(convert<vf64>(x)); }

template <class V>
TW_INLINE vi8 to_i8(V x) {
  return convert<vi8>(at_least(at_most(to_i32(x), vi32(127)), vi32(-128)));
}
template <class V>
TW_INLINE vu8 to_u8(V x) {
  return convert<vu8>(at_least(at_most(to_i32(x), vi32(255)), vi32(0)));
}

}  // namespace tw
