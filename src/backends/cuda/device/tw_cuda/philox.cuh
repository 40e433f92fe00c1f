// Philox4x32-10 (Salmon et al., 2011): the random word of a counter, without state. The same as
// include/tilewright/base/philox.h, bit for bit.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// The four words of block `counter` under `seed`.
TW_DEVICE Vec<u32, 4> philox(u64 seed, u64 counter) {
  u32 key0 = u32(seed), key1 = u32(seed >> 32);
  u32 c0 = u32(counter), c1 = u32(counter >> 32), c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u32 high0 = __umulhi(0xd2511f53u, c0), low0 = 0xd2511f53u * c0;
    const u32 high1 = __umulhi(0xcd9e8d57u, c2), low1 = 0xcd9e8d57u * c2;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

// Word `counter` of the stream of `seed`. A pure function of both: for four neighbouring counters, the first
// divisible by four, the compiler keeps one philox call.
TW_DEVICE u32 philox_word(u64 seed, u64 counter) {
  const Vec<u32, 4> block = philox(seed, counter >> 2);
  const u32 which = u32(counter) & 3u;
  const u32 low = (which & 1u) != 0 ? block.v[1] : block.v[0];
  const u32 high = (which & 1u) != 0 ? block.v[3] : block.v[2];
  return (which & 2u) != 0 ? high : low;
}

// Lanes 2 p and 2 p + 1 have two words each of a block, of counters that lie side by side, and again of the
// block `further` counters behind: of each block its half. The even lane runs the cipher for the first block,
// the odd one for the second, and each gives the other its half. `counter` is that of the lane's first word.
TW_DEVICE Vec<u32, 4> philox_across_columns(u64 seed, u64 counter, u32 further) {
  const bool odd = (threadIdx.x & 1) != 0;
  const Vec<u32, 4> mine = philox(seed, (odd ? counter + further : counter) >> 2);
  const u32 low = __shfl_xor_sync(kFullWarp, odd ? mine.v[0] : mine.v[2], 1),
            high = __shfl_xor_sync(kFullWarp, odd ? mine.v[1] : mine.v[3], 1);
  return odd ? Vec<u32, 4>{{low, high, mine.v[2], mine.v[3]}}
             : Vec<u32, 4>{{mine.v[0], mine.v[1], low, high}};
}

// Lanes that differ in bits 2 and 3 have counters that lie side by side: a word each of a block, for each of
// four columns, `column` counters and `further` counters apart. Each lane runs the cipher for one column; a
// transposition in two steps of pairs gives each its word of every one. `counter` is that of the lane's first
// word.
TW_DEVICE Vec<u32, 4> philox_across_rows(u64 seed, u64 counter, u64 column, u64 further) {
  const bool second = (threadIdx.x & 4) != 0, upper = (threadIdx.x & 8) != 0;
  Vec<u32, 4> words = philox(seed, (counter + (second ? column : 0) + (upper ? further : 0)) >> 2);
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const u32 got = __shfl_xor_sync(kFullWarp, second ? words.v[i] : words.v[i + 1], 4);
    if (second)
      words.v[i] = got;
    else
      words.v[i + 1] = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 got = __shfl_xor_sync(kFullWarp, upper ? words.v[i] : words.v[i + 2], 8);
    if (upper)
      words.v[i] = got;
    else
      words.v[i + 2] = got;
  }
  return words;
}

// [0, 1) in steps of 2^-24, all exact in f32.
TW_DEVICE float uniform_f32(u32 word) { return float(word >> 8) * 0x1p-24f; }

}  // namespace tw
