// Vectors at the ragged end of a row: whole where they fit, element by element where they do not.
#pragma once

#include "tw_cuda/memory.cuh"

namespace tw {

TW_DEVICE float infinity() { return bits_to_f32(0x7f800000u); }
TW_DEVICE float not_a_number() { return bits_to_f32(0x7fffffffu); }

// The nearest i32: compares with every smaller number as the i64 does.
TW_DEVICE i32 saturate_i32(i64 x) {
  return x > 0x7fffffffll ? 0x7fffffff : x < -0x80000000ll ? -0x7fffffff - 1 : i32(x);
}

// The same registers, but the compiler no longer knows what it computed from them: it converts them again
// instead of keeping the results.
template <class T, int N>
TW_DEVICE void opaque(Vec<T, N>& x) {
  if constexpr (sizeof(Vec<T, N>) % 4 == 0) {
    auto words = bit_cast<Vec<u32, int(sizeof(Vec<T, N>) / 4)>>(x);
#pragma unroll
    for (int i = 0; i < int(sizeof(Vec<T, N>) / 4); ++i) asm volatile("" : "+r"(words.v[i]));
    x = bit_cast<Vec<T, N>>(words);
  }
}

// Elements first … end - 1 of N, of a vector that an edge cuts; whole ones have been loaded. In a loop of its
// own: between loads of whole vectors its branch would keep the next one waiting for the last.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE void load_cut(Vec<T, N>& vector, int first, int end, const T* p) {
  if (first <= 0 && end >= N) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i >= first && i < end) vector.v[i] = load<1, kCache>(p + i).v[0];
  }
}
template <class T, int N>
TW_DEVICE void store_between(int first, int end, T* p, const Vec<T, N>& value) {
  if (first <= 0 && end >= N) {
    store(p, value);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i >= first && i < end) store(p + i, Vec<T, 1>{{value.v[i]}});
    }
  }
}

// Elements `step` apart in memory.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE Vec<T, N> load_strided(int first, int end, const T* p, i64 step, T fill) {
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i] = i >= first && i < end ? load<1, kCache>(p + i * step).v[0] : fill;
  return out;
}
template <class T, int N>
TW_DEVICE void store_strided(int first, int end, T* p, i64 step, const Vec<T, N>& value) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i >= first && i < end) store(p + i * step, Vec<T, 1>{{value.v[i]}});
  }
}

// The first element inside an extent, and the first behind it, of a tile of `size` elements from `start` on.
TW_DEVICE int first_inside(i64 start, int size) {
  return start >= 0 ? 0 : -start > size ? size : int(-start);
}
TW_DEVICE int end_inside(i64 start, i64 extent, int size) {
  const i64 n = extent - start;
  return n < 0 ? 0 : n > size ? size : int(n);
}

}  // namespace tw
