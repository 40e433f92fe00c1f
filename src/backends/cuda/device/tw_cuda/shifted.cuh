// Vectors that begin anywhere: an aligned access more, and what it brings moved to its place.
#pragma once

#include "tw_cuda/memory.cuh"

namespace tw {
namespace detail {

// Drops the first `by` bytes of the words, less than kChunk and a multiple of kElement.
template <int kChunk, int kElement, int W>
TW_DEVICE void shift_words(u32 (&words)[W], u32 by) {
#pragma unroll
  for (int step = kChunk / 8; step > 0; step /= 2) {
    const bool moves = (by & u32(4 * step)) != 0;
#pragma unroll
    for (int i = 0; i + step < W; ++i) words[i] = moves ? words[i + step] : words[i];
  }
  if constexpr (kElement < 4) {
#pragma unroll
    for (int i = 0; i + 1 < W; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], by % 4 * 8);
  }
}

}  // namespace detail

// Elements `first` to `end` - 1 of N consecutive ones from anywhere; the others are unspecified, and `fill`
// if all are. Accesses are aligned, and carried out where they hold one of the elements: memory is there up
// to the next multiple of 16 bytes.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE Vec<T, N> load_shifted(int first, int end, const T* p, T fill) {
  constexpr int kElement = int(sizeof(T)), kBytes = kElement * N, kChunk = detail::access_bytes<kBytes>;
  constexpr int kChunks = kBytes / kChunk;
  using W = typename detail::Word<kChunk>::type;
  Vec<T, N> filled;
#pragma unroll
  for (int i = 0; i < N; ++i) filled.v[i] = fill;
  struct Filled {
    W w[kChunks];
  };
  const auto fills = bit_cast<Filled>(filled);
  const int by = int(u32(reinterpret_cast<unsigned long long>(p)) % kChunk);
  const W* const at = reinterpret_cast<const W*>(reinterpret_cast<const char*>(p) - by);
  const int begin = by + (first > 0 ? first : 0) * kElement, behind = by + (end < N ? end : N) * kElement;
  struct Chunks {
    W w[kChunks + 1];
  } chunks;
#pragma unroll
  for (int i = 0; i <= kChunks; ++i) {
    chunks.w[i] = fills.w[i < kChunks ? i : 0];
    if (first < end && begin < (i + 1) * kChunk && behind > i * kChunk)
      chunks.w[i] = detail::load_word<kCache>(at + i);
  }
  struct Words {
    u32 w[kBytes / 4 + kChunk / 4];
  } words = bit_cast<Words>(chunks);
  detail::shift_words<kChunk, kElement>(words.w, u32(by));
  Vec<u32, kBytes / 4> out;
#pragma unroll
  for (int i = 0; i < kBytes / 4; ++i) out.v[i] = words.w[i];
  return bit_cast<Vec<T, N>>(out);
}

}  // namespace tw
