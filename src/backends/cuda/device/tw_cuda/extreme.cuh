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

template <class T, int N>
TW_DEVICE float max_of(const Vec<T, N>& packed) {
  const auto words = bit_cast<Vec<u32, N / 2>>(packed);
  u32 most = words.v[0];
#pragma unroll
  for (int w = 1; w < N / 2; ++w) most = max_of_pairs(T{}, most, words.v[w]);
  const auto two = unpack_word<T>(most);
  return max(two.v[0], two.v[1]);
}

template <class T, int N>
TW_DEVICE float min_of(const Vec<T, N>& packed) {
  const auto words = bit_cast<Vec<u32, N / 2>>(packed);
  u32 least = words.v[0];
#pragma unroll
  for (int w = 1; w < N / 2; ++w) least = min_of_pairs(T{}, least, words.v[w]);
  const auto two = unpack_word<T>(least);
  return min(two.v[0], two.v[1]);
}

}  // namespace tw
