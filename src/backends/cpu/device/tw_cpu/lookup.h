// Tables of 16 f32 that fit in a register, and functions given as 16 polynomials, one per piece of the
// argument's range: choosing a lane's polynomial costs one permutation a coefficient, cheaper than a
// division.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// table[index & 15] in each lane.
TW_INLINE vf32 lookup16(const f32 (&table)[16], vi32 index) {
#if TW_AVX512
  return (vf32)__builtin_ia32_permvarsf512(*(const vf32*)table, index);
#elif TW_AVX2
  const vf32 low = (vf32)__builtin_ia32_permvarsf256(*(const vf32*)table, index);
  const vf32 high = (vf32)__builtin_ia32_permvarsf256(*(const vf32*)(table + 8), index);
  return (index << 28) < 0 ? high : low;
#else
  vf32 found;
#pragma unroll
  for (int lane = 0; lane < TW_LANES; ++lane) found[lane] = table[index[lane] & 15];
  return found;
#endif
}

template <int Terms>
TW_INLINE vf32 piecewise(const f32 (&table)[Terms][16], vi32 piece, vf32 x) {
  vf32 sum = lookup16(table[Terms - 1], piece);
#pragma unroll
  for (int i = Terms - 2; i >= 0; --i) sum = mad(sum, x, lookup16(table[i], piece));
  return sum;
}

}  // namespace tw
