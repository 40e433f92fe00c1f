// The lanes of a vector combined into one value: a tree whose shape depends on the number of lanes alone.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

struct Add {
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    return a + b;
  }
};
struct Multiply {
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    return a * b;
  }
};
struct Minimum {
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    return min(a, b);
  }
};
struct Maximum {
  template <class V>
  static inline __attribute__((always_inline)) V apply(V a, V b) {
    return max(a, b);
  }
};

template <class Combine, class V>
TW_INLINE auto fold(V x) {
#if TW_LANES == 16
  const auto eight = Combine::apply(x.lo, x.hi);
  const auto four = Combine::apply(eight.lo, eight.hi);
#elif TW_LANES == 8
  const auto four = Combine::apply(x.lo, x.hi);
#else
  const auto four = x;
#endif
  const auto two = Combine::apply(four.lo, four.hi);
  return Combine::apply(two.x, two.y);
}

// Two vectors as one, in which bit d of a lane's number says which of them it is from: the lanes of both
// whose own numbers have the bit clear, and those that have it set.
#define TW_CLEAR(lane) ((lane) & d ? (lane) - d + TW_LANES : (lane))
#define TW_SET(lane) ((lane) & d ? (lane) + TW_LANES : (lane) + d)
#define TW_FOUR(of, lane) of(lane), of(lane + 1), of(lane + 2), of(lane + 3)
#if TW_LANES == 16
#define TW_ALL(of) TW_FOUR(of, 0), TW_FOUR(of, 4), TW_FOUR(of, 8), TW_FOUR(of, 12)
#elif TW_LANES == 8
#define TW_ALL(of) TW_FOUR(of, 0), TW_FOUR(of, 4)
#else
#define TW_ALL(of) TW_FOUR(of, 0)
#endif
template <int d, class V>
TW_INLINE V lanes_clear(V a, V b) {
  return __builtin_shufflevector(a, b, TW_ALL(TW_CLEAR));
}
template <int d, class V>
TW_INLINE V lanes_set(V a, V b) {
  return __builtin_shufflevector(a, b, TW_ALL(TW_SET));
}
#undef TW_CLEAR
#undef TW_SET
#undef TW_FOUR
#undef TW_ALL
template <class Combine, int d, class V>
TW_INLINE void fold_bit(V* rows) {
#pragma clang loop unroll(full)
  for (int i = 0; i < d; ++i)
    rows[i] = Combine::apply(lanes_clear<d>(rows[i], rows[i + d]), lanes_set<d>(rows[i], rows[i + d]));
}
// Each of as many vectors as there are lanes folded into a lane, by the tree of fold(): two vectors fold as
// one.
template <class Combine, class V>
TW_INLINE V fold_rows(V (&rows)[TW_LANES]) {
#if TW_LANES == 16
  fold_bit<Combine, 8>(rows);
#endif
#if TW_LANES >= 8
  fold_bit<Combine, 4>(rows);
#endif
  fold_bit<Combine, 2>(rows);
  fold_bit<Combine, 1>(rows);
  return rows[0];
}

template <class V>
TW_INLINE auto reduce_sum(V x) {
  return fold<Add>(x);
}
template <class V>
TW_INLINE auto reduce_prod(V x) {
  return fold<Multiply>(x);
}
template <class V>
TW_INLINE auto reduce_min(V x) {
  return fold<Minimum>(x);
}
template <class V>
TW_INLINE auto reduce_max(V x) {
  return fold<Maximum>(x);
}

}  // namespace tw
