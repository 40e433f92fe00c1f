// Dots of f16, bf16 and 8-bit floats. Products of bf16 are exact in f32; the instructions for pairs
// of them, on vectors and on tiles, take subnormal operands for zero and write no subnormal results.
#pragma once
#include "tw_cpu/dot_element.h"
#include "tw_cpu/narrow.h"

namespace tw {

typedef DotWidened<u16, f16_to_f32> DotF16;
typedef DotWidened<u8, f8e4m3_to_f32> DotF8e4m3;
typedef DotWidened<u8, f8e5m2_to_f32> DotF8e5m2;

#if defined(TW_AVX512) && defined(__AVX512BF16__)
struct DotBf16 {
  typedef u16 stored;
  typedef u32 word;
  typedef f32 sum;
  static constexpr int kDepth = 2;
  static constexpr bool kCorrects = false;
  static inline __attribute__((always_inline)) vu32 words(const u16* at) { return load((const u32*)at); }
  static inline __attribute__((always_inline)) vu32 place(vu16 x, int d) {
    return convert<vu32>(x) << (16 * d);
  }
  static inline __attribute__((always_inline)) vu32 left(vu32 x) { return x; }
  static inline __attribute__((always_inline)) vf32 add(vf32 c, vu32 a, vu32 b) {
    typedef __bf16 pairs __attribute__((vector_size(64)));
    return __builtin_ia32_dpbf16ps_512(c, bits_as<pairs>(a), bits_as<pairs>(b));
  }
};
#else
typedef DotWidened<u16, bf16_to_f32> DotBf16;
#endif

#ifdef TW_TILES
struct TileBf16 : TileElement<u16, f32> {
  template <int Sum, int A, int B>
  static inline __attribute__((always_inline)) void multiply() {
    __builtin_ia32_tdpbf16ps(Sum, A, B);
  }
};
template <>
struct TilesOf<DotBf16> {
  static constexpr bool kThere = true;
  typedef TileBf16 type;
};
#endif

}  // namespace tw
