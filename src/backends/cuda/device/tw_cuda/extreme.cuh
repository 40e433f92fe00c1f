// The largest and the smallest of a vector of 16-bit floats, two at a time: conversions to f32 are exact and
// keep order, so that one of the result does for all. NaN if an element is.
#pragma once

#include "tw_cuda/arith.cuh"
#include "tw_cuda/convert.cuh"

namespace tw {

TW_DEVICE u32 max_of_pairs(bf16, u32 a, u32 b) {
  u32 out;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}
TW_DEVICE u32 max_of_pairs(f16, u32 a, u32 b) {
  u32 out;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}
TW_DEVICE u32 min_of_pairs(bf16, u32 a, u32 b) {
  u32 out;
  asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}
TW_DEVICE u32 min_of_pairs(f16, u32 a, u32 b) {
  u32 out;
  asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}

template <class T, int N, class Better>
TW_DEVICE float best_of(const Vec<T, N>& packed, Better better) {
  const auto words = bit_cast<Vec<u32, N / 2>>(packed);
  u32 best = words.v[0];
#pragma unroll
  for (int w = 1; w < N / 2; ++w) best = better(best, words.v[w]);
  return unpack_word<T>(better(best, best >> 16)).v[0];
}
template <class T, int N>
TW_DEVICE float max_of(const Vec<T, N>& packed) {
  return best_of(packed, [](u32 a, u32 b) { return max_of_pairs(T{}, a, b); });
}
template <class T, int N>
TW_DEVICE float min_of(const Vec<T, N>& packed) {
  return best_of(packed, [](u32 a, u32 b) { return min_of_pairs(T{}, a, b); });
}

}  // namespace tw
