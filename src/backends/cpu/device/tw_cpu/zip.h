// Lanes of two vectors alternately, the step from which transpositions are made, and back.
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
// Every other one of elements in a row, a0 a2 a4 …, of which a has the first and b, from the last lane of a
// on, the rest.
template <class V>
TW_INLINE V every_other(V a, V b) {
#if TW_LANES == 16
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
#elif TW_LANES == 8
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(a, b, 0, 2, 5, 7);
#endif
}

}  // namespace tw
