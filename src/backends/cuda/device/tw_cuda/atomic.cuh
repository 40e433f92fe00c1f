// atomic_add for every element type: the hardware's where it has one, a compare-and-swap loop on the
// enclosing word for the narrow ones.
#pragma once

#include "tw_cuda/convert.cuh"

namespace tw {

TW_DEVICE void atomic_add(float* p, float x) { atomicAdd(p, x); }
TW_DEVICE void atomic_add(double* p, double x) { atomicAdd(p, x); }
TW_DEVICE void atomic_add(i32* p, i32 x) { atomicAdd(p, x); }
TW_DEVICE void atomic_add(i64* p, i64 x) { atomicAdd(reinterpret_cast<u64*>(p), u64(x)); }

// The sum in the compute type, rounded as a store rounds.
TW_DEVICE float sum_of(float a, float b) { return a + b; }
TW_DEVICE i32 sum_of(i32 a, i32 b) { return a + b; }
template <class T>
struct narrow_compute {
  using type = float;
};
template <>
struct narrow_compute<i8> {
  using type = i32;
};
template <>
struct narrow_compute<u8> {
  using type = i32;
};

// 1- and 2-byte elements.
template <class T>
TW_DEVICE void atomic_add(T* p, T x) {
  static_assert(sizeof(T) <= 2, "wider types have an instruction");
  using Compute = typename narrow_compute<T>::type;
  const u64 address = reinterpret_cast<u64>(p);
  u32* word = reinterpret_cast<u32*>(address & ~u64(3));
  const u32 shift = u32(address & 3) * 8;
  const u32 mask = (sizeof(T) == 2 ? 0xffffu : 0xffu) << shift;
  u32 old = *word, seen;
  do {
    seen = old;
    T mine;
    const u32 bits = (seen & mask) >> shift;
    if constexpr (sizeof(T) == 2)
      mine = bit_cast<T>(u16(bits));
    else
      mine = bit_cast<T>(u8(bits));
    const T next = cast<T>(sum_of(cast<Compute>(mine), cast<Compute>(x)));
    u32 next_bits;
    if constexpr (sizeof(T) == 2)
      next_bits = bit_cast<u16>(next);
    else
      next_bits = bit_cast<u8>(next);
    old = atomicCAS(word, seen, (seen & ~mask) | (next_bits << shift));
  } while (old != seen);
}

#if __CUDA_ARCH__ >= 900
// Neighbours, 16 or 8 bytes at once; `p` is aligned to them.
template <int N>
TW_DEVICE void atomic_add(float* p, const Vec<float, N>& x) {
  static_assert(N % 2 == 0, "of two or four");
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4)
      asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p + i), "f"(x.v[i]), "f"(x.v[i + 1]),
                   "f"(x.v[i + 2]), "f"(x.v[i + 3])
                   : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 2)
      asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(p + i), "f"(x.v[i]), "f"(x.v[i + 1])
                   : "memory");
  }
}
#endif

}  // namespace tw
