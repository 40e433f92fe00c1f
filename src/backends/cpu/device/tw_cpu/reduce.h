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
