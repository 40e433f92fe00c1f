// Philox4x32-10 (Salmon et al., SC 2011): word (counter & 3) of the block that (seed, counter >> 2) names.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

struct PhiloxBlock {
  vu32 word[4];
};

// A block in each lane; lane i has the counter words low[i], high[i], 0, 0.
TW_INLINE PhiloxBlock philox_block(u64 seed, vu32 low, vu32 high) {
  vu32 a = low, b = high, c = 0u, d = 0u;
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const vu64 p0 = convert<vu64>(a) * 0xD2511F53ul, p1 = convert<vu64>(c) * 0xCD9E8D57ul;
    const vu32 next_a = convert<vu32>(p1 >> 32) ^ b ^ key0, next_c = convert<vu32>(p0 >> 32) ^ d ^ key1;
    b = convert<vu32>(p1);
    d = convert<vu32>(p0);
    a = next_a;
    c = next_c;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

// Any counters: a whole block for each word.
TW_INLINE vu32 philox_word(u64 seed, vu64 counter) {
  const vu64 block = counter >> 2;
  const PhiloxBlock words = philox_block(seed, convert<vu32>(block), convert<vu32>(block >> 32));
  const vu32 index = convert<vu32>(counter) & 3u;
  const vu32 low = (index & 1u) != 0u ? words.word[1] : words.word[0];
  const vu32 high = (index & 1u) != 0u ? words.word[3] : words.word[2];
  return index >= 2u ? high : low;
}

// The words of the 4 · TW_LANES counters from `first` (a multiple of 4) on, in order: a quarter of the work.
TW_INLINE PhiloxBlock philox_consecutive(u64 seed, u64 first) {
  const vu64 block = convert<vu64>(bits_as<vu32>(iota())) + (first >> 2);
  const PhiloxBlock w = philox_block(seed, convert<vu32>(block), convert<vu32>(block >> 32));
  u32 words[4 * TW_LANES];
  for (int lane = 0; lane < TW_LANES; ++lane)
    for (int i = 0; i < 4; ++i) words[4 * lane + i] = w.word[i][lane];
  PhiloxBlock in_order;
  __builtin_memcpy(&in_order, words, sizeof words);
  return in_order;
}

// [0, 1) with the 24 bits that f32 holds exactly.
TW_INLINE vf32 uniform_f32(vu32 word) { return convert<vf32>(bits_as<vi32>(word >> 8)) * 0x1p-24f; }

}  // namespace tw
