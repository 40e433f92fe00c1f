// Positions in the order of their elements: a bitonic network over shared memory (K. Batcher, Sorting
// Networks and Their Applications, 1968).
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// One of two positions always comes first, so that the network, which moves equal elements past one
// another, keeps their order. A NaN is the largest element.
template <bool kDescending, class T>
TW_DEVICE bool comes_before(T a, i32 at_a, T b, i32 at_b) {
  const bool less = a < b || (b != b && a == a), more = b < a || (a != a && b == b);
  return kDescending ? more || (!less && at_a < at_b) : less || (!more && at_a < at_b);
}

// Sorts kLines lines of kLength keys and writes the position that each had. Elements of a line lie
// kElementStep apart, lines kLineStep. Two sorted halves become one by comparing the first element with the
// last, the second with the last but one, and so on, then elements at half the distance, a quarter of it, …:
// each comparison leaves the smaller element in front, so that elements behind the last one, which would be
// the largest, stay where they are and need not be there. By all threads of the block, which wait before and
// afterwards.
template <bool kDescending, int kLines, int kLength, int kElementStep, int kLineStep, int kThreads, class T>
TW_DEVICE void block_argsort(T* keys, i32* positions) {
  for (int i = threadIdx.x; i < kLines * kLength; i += kThreads)
    positions[i / kLength * kLineStep + i % kLength * kElementStep] = i % kLength;
  for (int run = 2; run < 2 * kLength; run *= 2)
    for (int apart = run / 2; apart > 0; apart /= 2) {
      __syncthreads();
      const bool mirrored = apart == run / 2;
      const int pairs = (kLength + run - 1) / run * (run / 2);
      for (int i = threadIdx.x; i < kLines * pairs; i += kThreads) {
        const int pair = i % pairs, line = i / pairs * kLineStep;
        const int low = pair / apart * 2 * apart + pair % apart;
        const int high = mirrored ? low ^ (run - 1) : low + apart;
        if (high >= kLength) continue;
        const int a = line + low * kElementStep, b = line + high * kElementStep;
        const T key_a = keys[a], key_b = keys[b];
        const i32 at_a = positions[a], at_b = positions[b];
        if (comes_before<kDescending>(key_a, at_a, key_b, at_b)) continue;
        keys[a] = key_b, keys[b] = key_a;
        positions[a] = at_b, positions[b] = at_a;
      }
    }
  __syncthreads();
}

}  // namespace tw
