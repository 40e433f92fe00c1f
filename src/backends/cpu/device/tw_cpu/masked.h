// Loads and stores under a mask, and of bool elements.
#pragma once
#include "tw_cpu/memory.h"

namespace tw {

template <class T>
using Vector = vec<T>;

// The first `count` lanes: none when it is negative, all when it is large.
TW_INLINE vmask lanes_below(i64 count) {
  return iota() < vi32((i32)(count < 0 ? 0 : count > TW_LANES ? TW_LANES : count));
}
// The lanes whose numbers first, first + 1, … are below the limit; up to it; the one that is it.
TW_INLINE vmask lanes_before(i64 limit, i64 first) {
  i64 count;
  if (__builtin_sub_overflow(limit, first, &count)) count = limit < 0 ? 0 : TW_LANES;
  return lanes_below(count);
}
TW_INLINE vmask lanes_up_to(i64 limit, i64 first) {
  return limit == 0x7fffffffffffffff ? vmask(-1) : lanes_before(limit + 1, first);
}
TW_INLINE vmask lane_at(i64 number, i64 first) {
  const u64 lane = (u64)number - (u64)first;
  return iota() == vi32(lane < TW_LANES ? (i32)lane : -1);
}
// A count that may be negative or too large, as one of [0, most].
TW_INLINE i64 limit(i64 count, i64 most) { return count < 0 ? 0 : count > most ? most : count; }
TW_INLINE vmask mask_of(bool b) { return vmask(-(i32)b); }

#ifdef TW_AVX512
typedef bool TwBits __attribute__((ext_vector_type(16)));
TW_INLINE u16 mask_bits(vmask m) { return bits_as<u16>(__builtin_convertvector(m, TwBits)); }
typedef char TwChars __attribute__((vector_size(16)));
typedef short TwShorts __attribute__((vector_size(32)));
typedef int TwInts __attribute__((vector_size(64)));
typedef long long TwLongs __attribute__((vector_size(64)));
template <class T>
struct TwHalves {
  TwLongs low, high;
};
#elif defined(TW_AVX2)
typedef int TwInts __attribute__((vector_size(32)));
typedef long long TwLongs __attribute__((vector_size(32)));
template <class T>
struct TwHalves {
  TwLongs low, high;
};
#endif

// An instruction under a mask that reaches a page which is not there takes a processor's slow path even where
// it moves nothing: 140 ns each on Zen 5 (docs/notes/2026-11-29-short-rows.md). What has no lane at all
// is not executed.

// Reads nothing where the mask is false: those lanes are `fill`.
template <class T>
TW_INLINE Vector<T> load(const T* at, vmask mask, Vector<T> fill) {
#ifdef TW_AVX512
  const u16 bits = mask_bits(mask);
  if (bits == 0) return fill;
  if constexpr (sizeof(T) == 4) {
    return (Vector<T>)__builtin_ia32_loaddqusi512_mask((const i32*)at, (TwInts)fill, bits);
  } else if constexpr (sizeof(T) == 8) {
    auto halves = bits_as<TwHalves<T>>(fill);
    halves.low = __builtin_ia32_loaddqudi512_mask((const long long*)at, halves.low, (u8)bits);
    if (bits >> 8 != 0)
      halves.high =
          __builtin_ia32_loaddqudi512_mask((const long long*)(at + 8), halves.high, (u8)(bits >> 8));
    return bits_as<Vector<T>>(halves);
  } else if constexpr (sizeof(T) == 2) {
    return (Vector<T>)__builtin_ia32_loaddquhi256_mask((const TwShorts*)at, (TwShorts)fill, bits);
  } else {
    return (Vector<T>)__builtin_ia32_loaddquqi128_mask((const TwChars*)at, (TwChars)fill, bits);
  }
#else
#ifdef TW_AVX2
  if (!any(mask)) return fill;
  if constexpr (sizeof(T) == 4) {
    return select(mask, (Vector<T>)__builtin_ia32_maskloadd256((const TwInts*)at, (TwInts)mask), fill);
  } else if constexpr (sizeof(T) == 8) {
    const auto lanes = bits_as<TwHalves<T>>(convert<vi64>(mask));
    const TwHalves<T> loaded = {__builtin_ia32_maskloadq256((const TwLongs*)at, lanes.low),
                                __builtin_ia32_maskloadq256((const TwLongs*)(at + 4), lanes.high)};
    return select(mask, bits_as<Vector<T>>(loaded), fill);
  } else
#endif
  {
#pragma clang loop unroll(full)
    for (int lane = 0; lane < TW_LANES; ++lane)
      if (mask[lane]) fill[lane] = at[lane];
    return fill;
  }
#endif
}

// Writes nothing where the mask is false.
template <class T>
TW_INLINE void store(T* at, Vector<T> x, vmask mask) {
#ifdef TW_AVX512
  const u16 bits = mask_bits(mask);
  if (bits == 0) return;
  if constexpr (sizeof(T) == 4) {
    __builtin_ia32_storedqusi512_mask((i32*)at, (TwInts)x, bits);
  } else if constexpr (sizeof(T) == 8) {
    const auto halves = bits_as<TwHalves<T>>(x);
    __builtin_ia32_storedqudi512_mask((long long*)at, halves.low, (u8)bits);
    if (bits >> 8 != 0) __builtin_ia32_storedqudi512_mask((long long*)(at + 8), halves.high, (u8)(bits >> 8));
  } else if constexpr (sizeof(T) == 2) {
    __builtin_ia32_storedquhi256_mask((TwShorts*)at, (TwShorts)x, bits);
  } else {
    __builtin_ia32_storedquqi128_mask((TwChars*)at, (TwChars)x, bits);
  }
#else
#ifdef TW_AVX2
  if (!any(mask)) return;
  if constexpr (sizeof(T) == 4) {
    __builtin_ia32_maskstored256((TwInts*)at, (TwInts)mask, (TwInts)x);
  } else if constexpr (sizeof(T) == 8) {
    const auto lanes = bits_as<TwHalves<T>>(convert<vi64>(mask));
    const auto halves = bits_as<TwHalves<T>>(x);
    __builtin_ia32_maskstoreq256((TwLongs*)at, lanes.low, halves.low);
    __builtin_ia32_maskstoreq256((TwLongs*)(at + 4), lanes.high, halves.high);
  } else
#endif
  {
#pragma clang loop unroll(full)
    for (int lane = 0; lane < TW_LANES; ++lane)
      if (mask[lane]) at[lane] = x[lane];
  }
#endif
}

// bool elements are bytes, 0 or 1.
TW_INLINE vmask load_bool(const u8* at) { return convert<vmask>(load(at) != 0); }
TW_INLINE vmask load_bool(const u8* at, vmask mask, vmask fill) {
  return convert<vmask>(load(at, mask, convert<vu8>(fill)) != 0);
}
TW_INLINE vu8 bool_bytes(vmask x) { return convert<vu8>(x) & 1; }
TW_INLINE void store_bool(u8* at, vmask x) { store(at, bool_bytes(x)); }
TW_INLINE void store_bool(u8* at, vmask x, vmask mask) { store(at, bool_bytes(x), mask); }

}  // namespace tw
