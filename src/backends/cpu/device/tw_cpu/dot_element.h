// How a dot multiplies the elements of one type. A word is what one step along the inner dimension reads of a
// row of a or a column of b: one element, or the few that one instruction multiplies and adds up.
#pragma once
#include "tw_cpu/memory.h"

namespace tw {

template <class V>
TW_INLINE V multiply_add(V a, V b, V c) {
  return a * b + c;
}
TW_INLINE vf32 multiply_add(vf32 a, vf32 b, vf32 c) { return mad(a, b, c); }
TW_INLINE vf64 multiply_add(vf64 a, vf64 b, vf64 c) { return mad(a, b, c); }

// One element a word, multiplied as it is stored.
template <class T>
struct DotSingles {
  typedef T stored;
  typedef T word;
  typedef T sum;
  static constexpr int kDepth = 1;          // elements in a word
  static constexpr bool kCorrects = false;  // see DotQuads
  // The words of neighbouring elements.
  static inline __attribute__((always_inline)) vec<word> words(const stored* at) { return load(at); }
  // Words of which x are the elements number d, the others zero.
  static inline __attribute__((always_inline)) vec<word> place(vec<stored> x, int) { return x; }
  // Words as a brings them.
  static inline __attribute__((always_inline)) vec<word> left(vec<word> x) { return x; }
  // c plus the products of the words, lane by lane.
  static inline __attribute__((always_inline)) vec<sum> add(vec<sum> c, vec<word> a, vec<word> b) {
    return multiply_add(a, b, c);
  }
};
typedef DotSingles<f32> DotF32;
typedef DotSingles<f64> DotF64;
typedef DotSingles<i32> DotI32;
typedef DotSingles<i64> DotI64;

// Floats of 16 and 8 bits, widened while they are packed.
template <class Stored, vf32 (*Widen)(vec<Stored>)>
struct DotWidened : DotSingles<f32> {
  typedef Stored stored;
  static inline __attribute__((always_inline)) vf32 words(const stored* at) { return Widen(load(at)); }
  static inline __attribute__((always_inline)) vf32 place(vec<stored> x, int) { return Widen(x); }
};

// What products are added to: c as it is, or nothing yet.
enum class DotStart { sums, zeros };
// Where a row of c ends: with room for whole vectors, or with its last column, behind which is other memory.
enum class DotEnd { beyond, within };

// How tile registers multiply the elements of E (dot_tiles.h): `type`, where they do.
template <class E>
struct TilesOf {
  static constexpr bool kThere = false;
};

#ifdef TW_TILES
// Elements that tile registers multiply as they are stored, four bytes of them a word.
template <class Stored, class Sum>
struct TileElement {
  typedef Stored stored;
  typedef u32 word;
  typedef Sum sum;
  static constexpr int kDepth = sizeof(word) / sizeof(stored);
  static inline __attribute__((always_inline)) vu32 words(const stored* at) { return load((const u32*)at); }
  static inline __attribute__((always_inline)) vu32 place(vec<stored> x, int d) {
    if constexpr (sizeof(stored) == 1)
      return convert<vu32>(bits_as<vu8>(x)) << (8 * d);
    else
      return convert<vu32>(x) << (16 * d);
  }
  static inline __attribute__((always_inline)) vu32 left(vu32 x) { return x; }
};
#endif

}  // namespace tw
