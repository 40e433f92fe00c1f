// Loads and stores of a vector's lanes: whole, the first `count` only, and past the caches.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

// load, store: any alignment. store_stream: p aligned to the whole vector; needs a fence before others read.
#define TW_MEMORY_OF(scalar, vector)                                               \
  typedef vector unaligned_##vector __attribute__((aligned(1), may_alias));        \
  typedef vector aligned_##vector __attribute__((may_alias));                      \
  TW_INLINE vector load(const scalar* p) { return *(const unaligned_##vector*)p; } \
  TW_INLINE void store(scalar* p, vector x) { *(unaligned_##vector*)p = x; }       \
  TW_INLINE void store_stream(scalar* p, vector x) { __builtin_nontemporal_store(x, (aligned_##vector*)p); }

TW_MEMORY_OF(i8, vi8)
TW_MEMORY_OF(u8, vu8)
TW_MEMORY_OF(i16, vi16)
TW_MEMORY_OF(u16, vu16)
TW_MEMORY_OF(i32, vi32)
TW_MEMORY_OF(u32, vu32)
TW_MEMORY_OF(i64, vi64)
TW_MEMORY_OF(u64, vu64)
TW_MEMORY_OF(f32, vf32)
TW_MEMORY_OF(f64, vf64)
#undef TW_MEMORY_OF

// Orders streaming stores before what follows.
TW_INLINE void fence_streams() { __builtin_ia32_sfence(); }

#ifdef TW_AVX512

typedef char bytes __attribute__((vector_size(16)));  // as the builtin spells its operand
typedef long long wide __attribute__((ext_vector_type(8)));
struct WidePair {
  wide low, high;
};

// Reads p[0 … count), count < TW_LANES, and nothing beyond; the other lanes are fill's.
template <class T, class V>
TW_INLINE V load_tail(const T* p, i64 count, V fill) {
  const u16 mask = (u16)((1u << count) - 1);
  if constexpr (sizeof(T) == 1) return bits_as<V>(__builtin_ia32_loaddquqi128_mask((const bytes*)p, bits_as<bytes>(fill), mask));
  if constexpr (sizeof(T) == 2) return bits_as<V>(__builtin_ia32_loaddquhi256_mask((const vi16*)p, bits_as<vi16>(fill), mask));
  if constexpr (sizeof(T) == 4) return bits_as<V>(__builtin_ia32_loaddqusi512_mask((const i32*)p, bits_as<vi32>(fill), mask));
  if constexpr (sizeof(T) == 8) {
    const auto parts = bits_as<WidePair>(fill);
    const auto* at = (const long long*)p;
    return bits_as<V>(WidePair{(wide)__builtin_ia32_loaddqudi512_mask(at, parts.low, (u8)mask),
                               (wide)__builtin_ia32_loaddqudi512_mask(at + 8, parts.high, (u8)(mask >> 8))});
  }
}
template <class T, class V>
TW_INLINE void store_tail(T* p, V x, i64 count) {
  const u16 mask = (u16)((1u << count) - 1);
  if constexpr (sizeof(T) == 1) __builtin_ia32_storedquqi128_mask((bytes*)p, bits_as<bytes>(x), mask);
  if constexpr (sizeof(T) == 2) __builtin_ia32_storedquhi256_mask((vi16*)p, bits_as<vi16>(x), mask);
  if constexpr (sizeof(T) == 4) __builtin_ia32_storedqusi512_mask((i32*)p, bits_as<vi32>(x), mask);
  if constexpr (sizeof(T) == 8) {
    const auto parts = bits_as<WidePair>(x);
    __builtin_ia32_storedqudi512_mask((long long*)p, parts.low, (u8)mask);
    __builtin_ia32_storedqudi512_mask((long long*)p + 8, parts.high, (u8)(mask >> 8));
  }
}

#else

template <class T, class V>
TW_INLINE V load_tail(const T* p, i64 count, V fill) {
#ifdef TW_AVX2
  if constexpr (sizeof(T) == 4) {
    const vmask mask = first_lanes(count);
    const vi32 read = (vi32)__builtin_ia32_maskloadd256((const vi32*)p, mask);
    return select(mask, bits_as<V>(read), fill);
  }
#endif
  for (i64 i = 0; i < count; ++i) fill[i] = p[i];
  return fill;
}
template <class T, class V>
TW_INLINE void store_tail(T* p, V x, i64 count) {
#ifdef TW_AVX2
  if constexpr (sizeof(T) == 4) return (void)__builtin_ia32_maskstored256((vi32*)p, first_lanes(count), bits_as<vi32>(x));
#endif
  for (i64 i = 0; i < count; ++i) p[i] = x[i];
}

#endif

}  // namespace tw
