// Blocks of which a part is not used: zeros take its place before tensor cores multiply the block, since 0
// times NaN is NaN.
#pragma once

#include "tw_cuda/block_layout.cuh"

namespace tw {

TW_DEVICE u32 shared_word(u32 address) {
  u32 word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}
TW_DEVICE void store_shared_word(u32 address, u32 word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

// Zeros at the depths (or rows) i of a block for which used(i) is false. By kThreads neighbouring threads,
// each for lines of its own; what must follow before the block is read is the caller's.
template <class Block, bool kKMajor, int kThreads, class Used>
TW_DEVICE void zero_unused(u32 block, const Used& used) {
  using T = typename Block::type;
  constexpr int kLines = kKMajor ? Block::depth : Block::rows, kAcross = kKMajor ? Block::rows : Block::depth;
  constexpr bool kContiguous = kKMajor == (Block::major == Major::mn);  // a line lies in whole rows of panels
  const auto place = [](int line, int across) {
    return kKMajor ? Block::place(across, line) : Block::place(line, across);
  };
  const int thread = int(threadIdx.x) % kThreads;
  if constexpr (kContiguous) {
    for (int line = thread; line < kLines; line += kThreads)
      if (!used(line))
        for (int i = 0; i < kAcross; i += 16 / int(sizeof(T))) store_shared16(block + place(line, i), {});
  } else {
    constexpr int kPerWord = 4 / int(sizeof(T)), kBits = 8 * int(sizeof(T));
    for (int word = thread; word < kLines / kPerWord; word += kThreads) {
      u32 kept = 0;
      for (int i = 0; i < kPerWord; ++i)
        if (used(word * kPerWord + i)) kept |= (0xffffffffu >> (32 - kBits)) << (i * kBits);
      if (kept == 0xffffffffu) continue;
      for (int i = 0; i < kAcross; ++i) {
        const u32 at = block + place(word * kPerWord, i);
        store_shared_word(at, shared_word(at) & kept);
      }
    }
  }
}

}  // namespace tw
