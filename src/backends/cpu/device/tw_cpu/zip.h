// Lanes of two vectors alternately: the step from which transpositions are made.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// a0 b0 a1 b1 … of the first or the second halves.
template <class V>
TW_INLINE V zip_first(V a, V b) {
#if TW_LANES == 16
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif TW_LANES == 8
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
template <class V>
TW_INLINE V zip_second(V a, V b) {
#if TW_LANES == 16
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif TW_LANES == 8
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

}  // namespace tw
