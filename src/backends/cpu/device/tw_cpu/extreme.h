// argmax and argmin: the extreme lane and where it was first.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// The extreme seen so far in each lane and where it was first. A NaN is more extreme than any number.
template <class V>
struct Extreme {
  V value;
  vi32 index;  // -1: nothing yet
};
template <class V>
TW_INLINE Extreme<V> no_extreme() {
  return {V(0), vi32(-1)};
}
enum class Side { greatest, least };
template <Side side, class V>
TW_INLINE vmask beats(V a, V b) {
  const vmask better = side == Side::greatest ? lt(b, a) : lt(a, b);
  return better | (ne(a, a) & eq(b, b));
}
// Lanes of x, whose indices are larger than all before.
template <Side side, class V>
TW_INLINE Extreme<V> extreme(Extreme<V> old, V x, vi32 index, vmask where = vmask(-1)) {
  const vmask take = (beats<side>(x, old.value) | (old.index < 0)) & where;
  return {select(take, x, old.value), take ? index : old.index};
}
// Two that saw different indices, in any order.
template <Side side, class V>
TW_INLINE Extreme<V> earliest(Extreme<V> a, Extreme<V> b) {
  const vmask first = b.index < a.index;
  const vmask tie = ~beats<side>(a.value, b.value) & first;
  const vmask take = ((beats<side>(b.value, a.value) | tie) & (b.index >= 0)) | (a.index < 0);
  return {select(take, b.value, a.value), take ? b.index : a.index};
}
template <Side side, class V>
TW_INLINE i64 reduce_extreme(Extreme<V> x) {
  auto value = x.value[0];
  i32 index = x.index[0];
  for (int lane = 1; lane < TW_LANES; ++lane) {
    const auto v = x.value[lane];
    const i32 at = x.index[lane];
    const bool better = (side == Side::greatest ? v > value : v < value) || (v != v && value == value);
    const bool tie = v == value || (v != v && value != value);
    if (at >= 0 && (index < 0 || better || (tie && at < index))) value = v, index = at;
  }
  return index;
}

}  // namespace tw
