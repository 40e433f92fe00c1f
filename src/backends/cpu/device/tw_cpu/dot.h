// dot: c += a · b on tiles in buffers, whose rows have room for whole vectors. A block of c stays in
// registers while the inner dimension runs: each row's element of a is spread over the lanes and multiplied
// into a row of b.
#pragma once
#include "tw_cpu/memory.h"
#include "tw_cpu/reduce.h"

namespace tw {

// An element type whose values are used as they are stored: what is read, what is accumulated.
template <class Element>
struct DotElement {
  typedef Element stored;
  typedef i32 sum;  // of i8, u8 and i32
  typedef vec<sum> vector;
  static inline __attribute__((always_inline)) vector row(const stored* at) {
    return convert<vector>(load(at));
  }
  static inline __attribute__((always_inline)) vector spread(stored x) { return vector((sum)x); }
};
#define TW_DOT_ELEMENT(type)                                                                       \
  template <>                                                                                      \
  struct DotElement<type> {                                                                        \
    typedef type stored;                                                                           \
    typedef type sum;                                                                              \
    typedef v##type vector;                                                                        \
    static inline __attribute__((always_inline)) vector row(const stored* at) { return load(at); } \
    static inline __attribute__((always_inline)) vector spread(stored x) { return vector(x); }     \
  };
TW_DOT_ELEMENT(f32)
TW_DOT_ELEMENT(f64)
TW_DOT_ELEMENT(i64)
#undef TW_DOT_ELEMENT

// Floats of 16 and 8 bits, widened as they are read.
template <class Stored, class Vector, vf32 (*Widen)(Vector)>
struct Narrow {};
template <class Stored, class Vector, vf32 (*Widen)(Vector)>
struct DotElement<Narrow<Stored, Vector, Widen>> {
  typedef Stored stored;
  typedef f32 sum;
  typedef vf32 vector;
  static inline __attribute__((always_inline)) vector row(const stored* at) { return Widen(load(at)); }
  static inline __attribute__((always_inline)) vector spread(stored x) { return Widen(Vector(x)); }
};

template <class V>
TW_INLINE V multiply_add(V a, V b, V c) {
  return a * b + c;
}
TW_INLINE vf32 multiply_add(vf32 a, vf32 b, vf32 c) { return mad(a, b, c); }
TW_INLINE vf64 multiply_add(vf64 a, vf64 b, vf64 c) { return mad(a, b, c); }

// As many rows and vectors of c as the registers hold beside a row of b and an element of a.
#if TW_LANES == 16
constexpr int kDotRows = 6, kDotVectors = 4;
#else
constexpr int kDotRows = 6, kDotVectors = 2;
#endif

template <class D, int Rows, int Vectors>
TW_INLINE void dot_block(const typename D::stored* a, i64 a_stride, const typename D::stored* b, i64 b_stride,
                         typename D::sum* c, i64 c_stride, i64 depth) {
  typename D::vector sum[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v) sum[r][v] = load(c + r * c_stride + v * TW_LANES);
  for (i64 k = 0; k < depth; ++k) {
    typename D::vector row[Vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v) row[v] = D::row(b + k * b_stride + v * TW_LANES);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r) {
      const typename D::vector x = D::spread(a[r * a_stride + k]);
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v) sum[r][v] = multiply_add(x, row[v], sum[r][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v) store(c + r * c_stride + v * TW_LANES, sum[r][v]);
}

template <class D, int Rows, int Columns, int Vectors>
TW_INLINE void dot_columns(const typename D::stored* a, i64 a_stride, const typename D::stored* b,
                           i64 b_stride, typename D::sum* c, i64 c_stride, i64 depth) {
  for (i64 r = 0; r + kDotRows <= Rows; r += kDotRows)
    dot_block<D, kDotRows, Vectors>(a + r * a_stride, a_stride, b, b_stride, c + r * c_stride, c_stride,
                                    depth);
  constexpr int kRest = Rows % kDotRows, kDone = Rows - kRest;
  if constexpr (kRest > 0)
    dot_block<D, kRest, Vectors>(a + kDone * a_stride, a_stride, b, b_stride, c + kDone * c_stride, c_stride,
                                 depth);
}

// One column: its elements, and those of b, stand side by side without room for vectors between them.
template <class D, int Rows, int Depth>
TW_INLINE void dot_one_column(const typename D::stored* a, i64 a_stride, const typename D::stored* b,
                              typename D::sum* c) {
  constexpr i64 kWhole = Depth / TW_LANES * TW_LANES;
  for (i64 r = 0; r < Rows; ++r) {
    const typename D::stored* row = a + r * a_stride;
    typename D::vector sum = typename D::vector(0);
    for (i64 k = 0; k < kWhole; k += TW_LANES) sum = multiply_add(D::row(row + k), D::row(b + k), sum);
    typename D::sum total = c[r] + (kWhole > 0 ? reduce_sum(sum) : 0);
    for (i64 k = kWhole; k < Depth; ++k) total += D::spread(row[k])[0] * D::spread(b[k])[0];
    c[r] = total;
  }
}

template <class Element, int Rows, int Columns, int Depth, class T, class S>
static void dot(const T* a, i64 a_stride, const T* b, i64 b_stride, S* c, i64 c_stride) {
  typedef DotElement<Element> D;
  if constexpr (Columns == 1) return dot_one_column<D, Rows, Depth>(a, a_stride, b, c);
  constexpr int kWidth = kDotVectors * TW_LANES, kVectors = (Columns + TW_LANES - 1) / TW_LANES;
  for (i64 n = 0; n + kWidth <= kVectors * TW_LANES; n += kWidth)
    dot_columns<D, Rows, Columns, kDotVectors>(a, a_stride, b + n, b_stride, c + n, c_stride, Depth);
  constexpr int kRest = kVectors % kDotVectors, kDone = (kVectors - kRest) * TW_LANES;
  if constexpr (kRest > 0)
    dot_columns<D, Rows, Columns, kRest>(a, a_stride, b + kDone, b_stride, c + kDone, c_stride, Depth);
}

}  // namespace tw
