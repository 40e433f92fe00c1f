// Runs of bytes between memory and a block's shared memory: tiles of whole rows that lie one behind another,
// whose length no vector divides. Pieces of 16 bytes go to neighbouring threads; both ends of a run are
// aligned to that.
#pragma once

#include "tw_cuda/async.cuh"

namespace tw {

// The first `count` of kMost elements, zeros up to the end of the last piece.
template <int kThreads, int kMost, class T>
TW_DEVICE void fetch_run(T* to, const T* from, int count) {
  constexpr int kElements = 16 / int(sizeof(T)), kPieces = (kMost + kElements - 1) / kElements;
#pragma unroll
  for (int i = 0; i < kPieces; i += kThreads) {
    const int at = (i + int(threadIdx.x)) * kElements;
    const int left = (count - at) * int(sizeof(T));
    if (left > 0) copy_async16(to + at, from + at, left < 16 ? left : 16);
  }
}

// Behind all fetches of a loop: what any thread has fetched is there.
TW_DEVICE void wait_for_runs() {
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
}

template <int kThreads, int kMost, class T>
TW_DEVICE void send_run(const T* from, T* to, int count) {
  constexpr int kElements = 16 / int(sizeof(T)), kPieces = (kMost + kElements - 1) / kElements;
#pragma unroll
  for (int i = 0; i < kPieces; i += kThreads) {
    const int at = (i + int(threadIdx.x)) * kElements;
    if (at + kElements <= count) {
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
    } else if (at < count) {
      for (int e = at; e < count; ++e) to[e] = from[e];
    }
  }
}

}  // namespace tw
