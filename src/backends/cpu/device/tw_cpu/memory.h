// Loads and stores of a vector's lanes: whole, the first `count` only, and past the caches.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

template <class V>
struct __attribute__((packed, may_alias)) Unaligned {
  V lanes;
};
template <class V>
struct __attribute__((may_alias)) Aligned {
  V lanes;
};

// Any alignment.
template <class T>
TW_INLINE vec<T> load(const T* p) {
  return ((const Unaligned<vec<T>>*)p)->lanes;
}
template <class T>
TW_INLINE void store(T* p, vec<T> x) {
  ((Unaligned<vec<T>>*)p)->lanes = x;
}
// Past the caches; p aligned to the whole vector. Others may read after a fence.
template <class T>
TW_INLINE void store_stream(T* p, vec<T> x) {
  __builtin_nontemporal_store(x, &((Aligned<vec<T>>*)p)->lanes);
}
// Bytes at p … to the second-level cache: the first level is the current program's.
template <int Bytes, class T>
TW_INLINE void fetch_ahead(const T* p) {
#pragma clang loop unroll(full)
  for (int at = 0; at < Bytes; at += 64)
    __builtin_prefetch((const char*)p + at, /*to write*/ 0, /*not the first level*/ 2);
}
// Orders streaming stores before what follows.
TW_INLINE void fence_streams() { __builtin_ia32_sfence(); }

// load_tail, store_tail: only p[0 … count), count ≤ TW_LANES, is touched; the other lanes read are fill's.

#ifdef TW_AVX512

typedef char bytes __attribute__((vector_size(16)));  // as the builtin spells its operand
typedef long long wide __attribute__((ext_vector_type(8)));
struct WidePair {
  wide low, high;
};

template <class T, class V = vec<T>>
TW_INLINE V load_tail(const T* p, i64 count, vec<T> fill) {
  const u16 mask = (u16)((1u << count) - 1);
  if constexpr (sizeof(T) == 1)
    return bits_as<V>(__builtin_ia32_loaddquqi128_mask((const bytes*)p, bits_as<bytes>(fill), mask));
  if constexpr (sizeof(T) == 2)
    return bits_as<V>(__builtin_ia32_loaddquhi256_mask((const vi16*)p, bits_as<vi16>(fill), mask));
  if constexpr (sizeof(T) == 4)
    return bits_as<V>(__builtin_ia32_loaddqusi512_mask((const i32*)p, bits_as<vi32>(fill), mask));
  if constexpr (sizeof(T) == 8) {
    const auto parts = bits_as<WidePair>(fill);
    const auto* at = (const long long*)p;
    return bits_as<V>(WidePair{(wide)__builtin_ia32_loaddqudi512_mask(at, parts.low, (u8)mask),
                               (wide)__builtin_ia32_loaddqudi512_mask(at + 8, parts.high, (u8)(mask >> 8))});
  }
}
template <class T>
TW_INLINE void store_tail(T* p, vec<T> x, i64 count) {
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

template <class T, class V = vec<T>>
TW_INLINE V load_tail(const T* p, i64 count, vec<T> fill) {
#ifdef TW_AVX2
  if constexpr (sizeof(T) == 4) {
    const vmask mask = iota() < vi32((i32)count);
    const vi32 read = (vi32)__builtin_ia32_maskloadd256((const vi32*)p, mask);
    return select(mask, bits_as<V>(read), fill);
  }
#endif
  for (i64 i = 0; i < count; ++i) fill[i] = p[i];
  return fill;
}
template <class T>
TW_INLINE void store_tail(T* p, vec<T> x, i64 count) {
#ifdef TW_AVX2
  if constexpr (sizeof(T) == 4)
    return (void)__builtin_ia32_maskstored256((vi32*)p, (iota() < vi32((i32)count)), bits_as<vi32>(x));
#endif
  for (i64 i = 0; i < count; ++i) p[i] = x[i];
}

#endif

}  // namespace tw
