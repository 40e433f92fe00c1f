// Philox4x32-10 (Salmon et al., SC 2011): word (counter & 3) of the block that (seed, counter >> 2) names.
#pragma once
#include "tw_cpu/zip.h"

namespace tw {

struct PhiloxBlock {
  vu32 word[4];
};

// Words in the low halves of 64-bit lanes; what stands in the high halves is of no account, as the
// instruction multiplies low halves only: a product's words need no mask, and its high word one shift.
typedef u64 wide_lanes __attribute__((ext_vector_type(TW_LANES / 2)));
struct HalfBlocks {
  wide_lanes word[4];
};
TW_INLINE wide_lanes multiply_low(wide_lanes x, u64 factor) { return (x & 0xffffffffu) * factor; }
TW_INLINE HalfBlocks philox_rounds(u64 seed, wide_lanes low, wide_lanes high) {
  wide_lanes a = low, b = high, c = 0u, d = 0u;
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const wide_lanes p0 = multiply_low(a, 0xD2511F53u), p1 = multiply_low(c, 0xCD9E8D57u);
    a = (p1 >> 32) ^ b ^ (u64)key0;
    b = p1;
    c = (p0 >> 32) ^ d ^ (u64)key1;
    d = p0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

// A block in each lane; lane i has the counter words low[i], high[i], 0, 0.
TW_INLINE PhiloxBlock philox_block(u64 seed, vu32 low, vu32 high) {
  const HalfBlocks even = philox_rounds(seed, bits_as<wide_lanes>(low), bits_as<wide_lanes>(high));
  const HalfBlocks odd = philox_rounds(seed, bits_as<wide_lanes>(low) >> 32, bits_as<wide_lanes>(high) >> 32);
  PhiloxBlock block;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    block.word[i] = bits_as<vu32>((even.word[i] & 0xffffffffu) | (odd.word[i] << 32));
  return block;
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
