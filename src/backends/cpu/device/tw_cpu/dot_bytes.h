// Dots of 8-bit integers: exact modulo 2³², like additions of i32.
#pragma once
#include "tw_cpu/dot_element.h"

namespace tw {

// Widened to pairs of 16 bits; an instruction adds the two products.
template <class Stored>
struct DotPairs {
  typedef Stored stored;
  typedef u32 word;
  typedef i32 sum;
  static constexpr int kDepth = 2;
  static constexpr bool kCorrects = false;
  static inline __attribute__((always_inline)) vu32 words(const stored* at) {
    typedef Stored twice __attribute__((ext_vector_type(2 * TW_LANES)));
    typedef i16 pairs __attribute__((ext_vector_type(2 * TW_LANES)));
    return bits_as<vu32>(convert<pairs>(((const Unaligned<twice>*)at)->lanes));
  }
  static inline __attribute__((always_inline)) vu32 place(vec<Stored> x, int d) {
    return convert<vu32>(convert<vu16>(x)) << (16 * d);
  }
  static inline __attribute__((always_inline)) vu32 left(vu32 x) { return x; }
  static inline __attribute__((always_inline)) vi32 add(vi32 c, vu32 a, vu32 b) {
#ifdef TW_AVX512
    typedef i16 pairs __attribute__((vector_size(64)));
    return c + (vi32)__builtin_ia32_pmaddwd512(bits_as<pairs>(a), bits_as<pairs>(b));
#elif defined(TW_AVX2)
    typedef i16 pairs __attribute__((vector_size(32)));
    return c + (vi32)__builtin_ia32_pmaddwd256(bits_as<pairs>(a), bits_as<pairs>(b));
#else
    typedef i16 pairs __attribute__((vector_size(16)));
    return c + (vi32)__builtin_ia32_pmaddwd128(bits_as<pairs>(a), bits_as<pairs>(b));
#endif
  }
};
typedef DotPairs<u8> DotU8;

#if defined(TW_AVX512) && defined(__AVX512VNNI__)
// The instruction for quads takes a as unsigned: a + 128 is packed instead, and what that adds to the sums,
// 128 times each column of b, comes off again.
struct DotI8 {
  typedef i8 stored;
  typedef u32 word;
  typedef i32 sum;
  static constexpr int kDepth = 4;
  static constexpr bool kCorrects = true;
  static constexpr u32 kCorrection = 0x80808080;  // 128 in each byte
  static inline __attribute__((always_inline)) vu32 words(const i8* at) { return load((const u32*)at); }
  static inline __attribute__((always_inline)) vu32 place(vi8 x, int d) {
    return convert<vu32>(bits_as<vu8>(x)) << (8 * d);
  }
  static inline __attribute__((always_inline)) vu32 left(vu32 x) { return x ^ 0x80808080; }
  static inline __attribute__((always_inline)) vi32 add(vi32 c, vu32 a, vu32 b) {
    typedef i32 lanes __attribute__((vector_size(64)));
    return (vi32)__builtin_ia32_vpdpbusd512((lanes)c, bits_as<lanes>(a), bits_as<lanes>(b));
  }
};
#else
typedef DotPairs<i8> DotI8;
#endif

#ifdef TW_TILES
struct TileI8 : TileElement<i8, i32> {
  template <int Sum, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __builtin_ia32_tdpbssd(Sum, A, B);
  }
};
struct TileU8 : TileElement<u8, i32> {
  template <int Sum, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __builtin_ia32_tdpbuud(Sum, A, B);
  }
};
template <>
struct TilesOf<DotI8> {
  static constexpr bool kThere = true;
  typedef TileI8 type;
};
template <>
struct TilesOf<DotU8> {
  static constexpr bool kThere = true;
  typedef TileU8 type;
};
#endif

}  // namespace tw
