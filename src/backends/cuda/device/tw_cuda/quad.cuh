// The four lanes that share a row of a tensor core's accumulator, exchanging what they hold.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// What across_quad says, of 16-bit elements: a word each.
template <class T>
TW_DEVICE Vec<T, 8> halves_of_quad(const Vec<T, 2> (&parts)[4]) {
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

// The same for 8-bit elements, two blocks in a word: the first step exchanges blocks of even and odd numbers,
// the second the lower and the upper two.
template <class T>
TW_DEVICE Vec<T, 8> bytes_of_quad(const Vec<T, 2> (&parts)[4]) {
  const auto bytes = [&](int i) { return u32(bit_cast<u16>(parts[i])); };
  u32 even = bytes(0) | bytes(2) << 16, odd = bytes(1) | bytes(3) << 16;
  const bool second = (threadIdx.x & 1) != 0, upper = (threadIdx.x & 2) != 0;
  const u32 beside = __shfl_xor_sync(kFullWarp, second ? even : odd, 1);
  if (second)
    even = beside;
  else
    odd = beside;
  u32 low = __byte_perm(even, odd, 0x5410u), high = __byte_perm(even, odd, 0x7632u);
  const u32 beyond = __shfl_xor_sync(kFullWarp, upper ? low : high, 2);
  if (upper)
    low = beyond;
  else
    high = beyond;
  return bit_cast<Vec<T, 8>>(Vec<u32, 2>{{low, high}});
}

// Lane q of a quad has parts[i]: elements 2 q and 2 q + 1 of block i, of eight. Afterwards it has all of
// block q: 16 bytes of 16-bit elements or 8 of 8-bit ones, which one access stores. A transposition in two
// steps of pairs.
template <class T>
TW_DEVICE Vec<T, 8> across_quad(const Vec<T, 2> (&parts)[4]) {
  if constexpr (sizeof(T) == 1)
    return bytes_of_quad(parts);
  else
    return halves_of_quad(parts);
}

// Two rows of 16 bytes each that a quad holds as an accumulator lies: lane q's `even` are bytes 2 q and
// 2 q + 1 of one row (low half) and of the other, `odd` those 8 further. Afterwards out[i] are bytes 4 q to
// 4 q + 3 of row i. Each lane sends the half that one lane wants, then the one that another does.
TW_DEVICE void bytes_across_quad(u32 even, u32 odd, u32& first, u32& second) {
  const int lane = int(threadIdx.x % 32), q = lane % 4;
  const bool swapped = q % 2 != 0;
  const int from = lane - q + q % 2 * 2 + q / 2;
  const u32 one = __shfl_sync(kFullWarp, swapped ? odd : even, from);
  const u32 other = __shfl_sync(kFullWarp, swapped ? even : odd, from ^ 1);
  const bool crossed = q >= 2;
  first = __byte_perm(one, other, crossed ? 0x1054u : 0x5410u);
  second = __byte_perm(one, other, crossed ? 0x3276u : 0x7632u);
}

}  // namespace tw
