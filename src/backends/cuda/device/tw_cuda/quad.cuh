// The four lanes that share a row of a tensor core's accumulator, exchanging what they hold.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// Lane q of a quad has parts[i]: elements 2 q and 2 q + 1 of block i, of eight. Afterwards it has all of
// block q: 16 bytes of 16-bit elements, which one access stores. A transposition in two steps of pairs.
template <class T>
TW_DEVICE Vec<T, 8> across_quad(const Vec<T, 2> (&parts)[4]) {
  Vec<u32, 4> words;
#pragma unroll
  for (int i = 0; i < 4; ++i) words.v[i] = bit_cast<u32>(parts[i]);
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (threadIdx.x & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) != 0) continue;
      const u32 got = __shfl_xor_sync(kFullWarp, upper ? words.v[i] : words.v[i | bit], bit);
      if (upper)
        words.v[i] = got;
      else
        words.v[i | bit] = got;
    }
  }
  return bit_cast<Vec<T, 8>>(words);
}

}  // namespace tw
