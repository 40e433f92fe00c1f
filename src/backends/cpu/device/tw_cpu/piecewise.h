// Functions given as 16 polynomials, one per piece of the argument's range: each coefficient is a table that fits in a
// register, so choosing a lane's polynomial costs one permutation a coefficient, cheaper than a division.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

template <int Terms>
TW_INLINE vf32 piecewise(const f32 (&table)[Terms][16], vi32 piece, vf32 x) {
  vf32 sum = lookup16(table[Terms - 1], piece);
#pragma unroll
  for (int i = Terms - 2; i >= 0; --i) sum = mad(sum, x, lookup16(table[i], piece));
  return sum;
}

}  // namespace tw
