// Global memory: vector loads and stores of up to 16 bytes an access, with masks and conversion to f32.
#pragma once

#include "tw_cuda/convert.cuh"

namespace tw {

// The way of a load. All leave the caches to the hardware: lines that are marked as the first to go (.cs,
// L1::no_allocate) give way to whatever other kernels left in L2, for good.
enum class Cache {
  normal,
  constant,  // nobody writes the memory while the kernel runs: the read-only path (ld.global.nc)
  in_turn,   // past L1 (.cg), and where the text says: ptxas moves loads of the read-only path
};

namespace detail {

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

// One access of 1, 2, 4, 8 or 16 bytes.
template <Cache kCache, class W>
TW_DEVICE W load_word(const W* p) {
  if constexpr (kCache == Cache::constant) {
    return __ldg(p);
  } else if constexpr (kCache == Cache::in_turn) {
    return __ldcg(p);
  } else {
    return *p;
  }
}

template <int kBytes>
inline constexpr int access_bytes = kBytes % 16 == 0  ? 16
                                    : kBytes % 8 == 0 ? 8
                                    : kBytes % 4 == 0 ? 4
                                    : kBytes % 2 == 0 ? 2
                                                      : 1;

}  // namespace detail

// N consecutive elements. `p` is aligned to the widest access that divides their bytes, at most 16.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE Vec<T, N> load(const T* p) {
  constexpr int kBytes = int(sizeof(T)) * N;
  using W = typename detail::Word<detail::access_bytes<kBytes>>::type;
  constexpr int kAccesses = kBytes / int(sizeof(W));
  W words[kAccesses];
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) words[i] = detail::load_word<kCache>(reinterpret_cast<const W*>(p) + i);
  return bit_cast<Vec<T, N>>(words);
}

template <class T, int N>
TW_DEVICE void store(T* p, const Vec<T, N>& value) {
  constexpr int kBytes = int(sizeof(T)) * N;
  using W = typename detail::Word<detail::access_bytes<kBytes>>::type;
  constexpr int kAccesses = kBytes / int(sizeof(W));
  struct Words {
    W w[kAccesses];
  };
  const Words words = bit_cast<Words>(value);
#pragma unroll
  for (int i = 0; i < kAccesses; ++i) reinterpret_cast<W*>(p)[i] = words.w[i];
}

// A load or store if `in_bounds`; otherwise `fill`, and no access.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE Vec<T, N> load_if(bool in_bounds, const T* p, T fill) {
  if (in_bounds) return load<N, kCache>(p);
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i] = fill;
  return out;
}
template <class T, int N>
TW_DEVICE void store_if(bool in_bounds, T* p, const Vec<T, N>& value) {
  if (in_bounds) store(p, value);
}

// The first `count` of N elements, one access each; `fill` for the rest. For ends that a vector would
// overrun, and for rows that are not aligned.
template <int N, Cache kCache = Cache::normal, class T>
TW_DEVICE Vec<T, N> load_first(int count, const T* p, T fill) {
  Vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out.v[i] = i < count ? load<1, kCache>(p + i).v[0] : fill;
  return out;
}
template <class T, int N>
TW_DEVICE void store_first(int count, T* p, const Vec<T, N>& value) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < count) store(p + i, Vec<T, 1>{{value.v[i]}});
  }
}

// ---- f32 in registers, T in memory: whole words are converted at once
// ------------------------------------------------
template <class T, int N>
TW_DEVICE Vec<float, N> to_f32(const Vec<T, N>& packed) {
  Vec<float, N> out;
  if constexpr (N % per_word<T> == 0 && sizeof(T) < 4) {
    constexpr int kWords = N / per_word<T>;
    const auto words = bit_cast<Vec<u32, kWords>>(packed);
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const auto some = unpack_word<T>(words.v[w]);
#pragma unroll
      for (int i = 0; i < per_word<T>; ++i) out.v[w * per_word<T> + i] = some.v[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = cast<float>(packed.v[i]);
  }
  return out;
}

template <class T, int N>
TW_DEVICE Vec<T, N> from_f32(const Vec<float, N>& x) {
  if constexpr (N % per_word<T> == 0 && sizeof(T) < 4) {
    constexpr int kWords = N / per_word<T>;
    Vec<u32, kWords> words;
#pragma unroll
    for (int w = 0; w < kWords; ++w) words.v[w] = pack_word<T>(x.v + w * per_word<T>);
    return bit_cast<Vec<T, N>>(words);
  } else {
    Vec<T, N> out;
#pragma unroll
    for (int i = 0; i < N; ++i) out.v[i] = cast<T>(x.v[i]);
    return out;
  }
}

}  // namespace tw
