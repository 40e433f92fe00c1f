// Rows on their way: each thread copies the vectors that it will work on itself into its own slots of shared
// memory, so that no barrier is needed, and reads them when their group has arrived. A slot is 16 bytes;
// slots of one vector lie kThreads slots apart, neighbouring threads side by side.
#pragma once

#include "tw_cuda/async.cuh"

namespace tw {

template <int N, int kThreads, class T>
TW_DEVICE void fetch(uint4* slot, const T* from) {
  constexpr int kSlots = N * int(sizeof(T)) / 16;
#pragma unroll
  for (int i = 0; i < kSlots; ++i)
    copy_async16(slot + i * kThreads, reinterpret_cast<const uint4*>(from) + i);
}
// Zeros where not `in_bounds`; nothing is read then.
template <int N, int kThreads, class T>
TW_DEVICE void fetch_if(bool in_bounds, uint4* slot, const T* from) {
  constexpr int kSlots = N * int(sizeof(T)) / 16;
#pragma unroll
  for (int i = 0; i < kSlots; ++i)
    copy_async16(slot + i * kThreads, reinterpret_cast<const uint4*>(from) + i, in_bounds ? 16 : 0);
}

template <class T, int N, int kThreads>
TW_DEVICE Vec<T, N> fetched(const uint4* slot) {
  struct Words {
    uint4 w[N * int(sizeof(T)) / 16];
  };
  Words words;
#pragma unroll
  for (int i = 0; i < N * int(sizeof(T)) / 16; ++i) words.w[i] = slot[i * kThreads];
  return bit_cast<Vec<T, N>>(words);
}

}  // namespace tw
