// Philox4x32-10 (Salmon et al., SC 2011): word (counter & 3) of the block that (seed, counter >> 2) names.
#pragma once
#include "tw_cpu/zip.h"

namespace tw {

struct PhiloxBlock {
  vu32 word[4];
};

// The halves of the 64-bit products of 32-bit lanes and a factor: even and odd lanes apart, as the
// instruction multiplies the low half of each 64-bit lane.
struct Product {
  vu32 high, low;
};
typedef u64 wide_lanes __attribute__((ext_vector_type(TW_LANES / 2)));
TW_INLINE Product multiply(vu32 x, u64 factor) {
  const wide_lanes low_half = 0xffffffffu, pairs = bits_as<wide_lanes>(x);
  const wide_lanes even = (pairs & low_half) * factor, odd = (pairs >> 32) * factor;
  return {bits_as<vu32>((even >> 32) | (odd & ~low_half)), bits_as<vu32>((even & low_half) | (odd << 32))};
}

// A block in each lane; lane i has the counter words low[i], high[i], 0, 0.
TW_INLINE PhiloxBlock philox_block(u64 seed, vu32 low, vu32 high) {
  vu32 a = low, b = high, c = 0u, d = 0u;
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(a, 0xD2511F53u), p1 = multiply(c, 0xCD9E8D57u);
    a = p1.high ^ b ^ key0;
    b = p1.low;
    c = p0.high ^ d ^ key1;
    d = p0.low;
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
  const vu32 even_first = zip_first(w.word[0], w.word[2]), odd_first = zip_first(w.word[1], w.word[3]);
  const vu32 even_second = zip_second(w.word[0], w.word[2]), odd_second = zip_second(w.word[1], w.word[3]);
  return {{zip_first(even_first, odd_first), zip_second(even_first, odd_first),
           zip_first(even_second, odd_second), zip_second(even_second, odd_second)}};
}

// [0, 1) with the 24 bits that f32 holds exactly.
TW_INLINE vf32 uniform_f32(vu32 word) { return convert<vf32>(bits_as<vi32>(word >> 8)) * 0x1p-24f; }

}  // namespace tw
