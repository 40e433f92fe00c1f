// argmax and argmin: the extreme lane and where it was first.
#pragma once
#include "tw_cpu/reduce.h"

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
// Lanes moved down by `by`: lane i gets what lane i + by had, and the last lanes what the first had.
template <int by, class V>
TW_INLINE V rotated(V x) {
#if TW_LANES == 16
  if constexpr (by == 8)
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  else if constexpr (by == 4)
    return __builtin_shufflevector(x, x, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3);
  else if constexpr (by == 2)
    return __builtin_shufflevector(x, x, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1);
  else
    return __builtin_shufflevector(x, x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0);
#elif TW_LANES == 8
  if constexpr (by == 4)
    return __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
  else if constexpr (by == 2)
    return __builtin_shufflevector(x, x, 2, 3, 4, 5, 6, 7, 0, 1);
  else
    return __builtin_shufflevector(x, x, 1, 2, 3, 4, 5, 6, 7, 0);
#else
  if constexpr (by == 2)
    return __builtin_shufflevector(x, x, 2, 3, 0, 1);
  else
    return __builtin_shufflevector(x, x, 1, 2, 3, 0);
#endif
}
template <Side side, int by, class V>
TW_INLINE Extreme<V> with_lanes_behind(Extreme<V> x) {
  return earliest<side>(x, Extreme<V>{rotated<by>(x.value), rotated<by>(x.index)});
}
// Where each lane's extreme is; 0 if it has seen nothing.
template <class V>
TW_INLINE vi64 places(Extreme<V> x) {
  return convert<vi64>(max(x.index, vi32(0)));
}
// The first index of the extreme of all lanes, 0 if they have seen nothing: each step doubles the lanes that
// a lane speaks for.
template <Side side, class V>
TW_INLINE i64 reduce_extreme(Extreme<V> x) {
#if TW_LANES == 16
  x = with_lanes_behind<side, 8>(x);
#endif
#if TW_LANES >= 8
  x = with_lanes_behind<side, 4>(x);
#endif
  x = with_lanes_behind<side, 2>(x);
  const i64 place = with_lanes_behind<side, 1>(x).index[0];
  return place < 0 ? 0 : place;
}

template <Side side, int d, class V>
TW_INLINE void fold_extremes(Extreme<V>* rows) {
#pragma clang loop unroll(full)
  for (int i = 0; i < d; ++i) {
    const Extreme<V> a = rows[i], b = rows[i + d];
    rows[i] = earliest<side>(Extreme<V>{lanes_clear<d>(a.value, b.value), lanes_clear<d>(a.index, b.index)},
                             Extreme<V>{lanes_set<d>(a.value, b.value), lanes_set<d>(a.index, b.index)});
  }
}
// The first index of the extreme of each vector's lanes, of as many vectors as there are lanes (fold_rows()).
template <Side side, class V>
TW_INLINE vi64 fold_places(Extreme<V> (&rows)[TW_LANES]) {
#if TW_LANES == 16
  fold_extremes<side, 8>(rows);
#endif
#if TW_LANES >= 8
  fold_extremes<side, 4>(rows);
#endif
  fold_extremes<side, 2>(rows);
  fold_extremes<side, 1>(rows);
  return places(rows[0]);
}

}  // namespace tw
