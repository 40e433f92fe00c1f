// Casts between element types that saturate: float to integer.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// Truncates; beyond the type's range its limit, NaN → 0.
TW_INLINE vi32 to_i32(vf32 x) {
  const vi32 inside = convert<vi32>(at_least(at_most(x, vf32(2147483520.f)), vf32(-2147483648.f)));
  const vi32 result = select(x >= vf32(2147483648.f), vi32(2147483647), inside);
  return select(x == x, result, vi32(0));
}
TW_INLINE vi32 to_i32(vf64 x) {
  const vi32 inside = convert<vi32>(at_least(at_most(x, vf64(2147483647.0)), vf64(-2147483648.0)));
  return select(eq(x, x), inside, vi32(0));
}
TW_INLINE vi64 to_i64(vf64 x) {
  const vi64 inside = convert<vi64>(at_least(at_most(x, vf64(0x1.fffffffffffffp62)), vf64(-0x1p63)));
  const vi64 result = x >= vf64(0x1p63) ? vi64(0x7fffffffffffffff) : inside;
  return x == x ? result : vi64(0);
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
