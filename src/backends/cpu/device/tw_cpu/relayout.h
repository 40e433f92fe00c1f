// Tiles whose elements move to other places: transpose and reshape between buffers.
#pragma once
#include "tw_cpu/memory.h"
#include "tw_cpu/zip.h"

namespace tw {

template <int...>
struct IntList {};
template <class T, T... Number>
struct IntSequence {
  typedef IntList<Number...> list;
};
// 0, 1, … for a vector's lanes.
typedef __make_integer_seq<IntSequence, int, TW_LANES>::list LaneNumbers;

// Zipping row i with the row half the rows further on moves one bit of the row's number into the lane's;
// after all bits the rows' elements stand beside one another: of as many rows as lanes, the transposed
// square.
template <int Rows, class V>
TW_INLINE void zip_rows(V (&rows)[Rows]) {
  V zipped[Rows];
#pragma clang loop unroll(full)
  for (int bit = 1; bit < Rows; bit *= 2) {
#pragma clang loop unroll(full)
    for (int i = 0; i < Rows / 2; ++i) {
      zipped[2 * i] = zip_first(rows[i], rows[i + Rows / 2]);
      zipped[2 * i + 1] = zip_second(rows[i], rows[i + Rows / 2]);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < Rows; ++i) rows[i] = zipped[i];
  }
}

// Transposes a square of as many rows as lanes.
template <class V>
TW_INLINE void transpose_lanes(V (&rows)[TW_LANES]) {
  zip_rows(rows);
}

template <class T>
TW_INLINE void transpose_block(const T* from, i64 from_stride, T* to, i64 to_stride) {
  vec<T> rows[TW_LANES];
#pragma clang loop unroll(full)
  for (int i = 0; i < TW_LANES; ++i) rows[i] = load(from + i * from_stride);
  transpose_lanes(rows);
#pragma clang loop unroll(full)
  for (int i = 0; i < TW_LANES; ++i) store(to + i * to_stride, rows[i]);
}

// The same where fewer than as many rows, or columns, are there.
template <int Rows, int Columns, class T>
TW_INLINE void transpose_edge(const T* from, i64 from_stride, T* to, i64 to_stride) {
  vec<T> rows[TW_LANES];
#pragma clang loop unroll(full)
  for (int i = 0; i < TW_LANES; ++i)
    rows[i] = i >= Rows             ? vec<T>(0)
              : Columns == TW_LANES ? load(from + i * from_stride)
                                    : load_tail(from + i * from_stride, Columns, vec<T>(0));
  transpose_lanes(rows);
#pragma clang loop unroll(full)
  for (int i = 0; i < Columns; ++i)
    if (Rows == TW_LANES)
      store(to + i * to_stride, rows[i]);
    else
      store_tail(to + i * to_stride, rows[i], Rows);
}

// The first `Rows` lanes of each `Apart`, one group after another.
template <int Rows, int Apart, class V, int... Lane>
TW_INLINE V pack_groups(V x, IntList<Lane...>) {
  return __builtin_shufflevector(
      x, x, (Lane / Rows < TW_LANES / Apart ? Lane / Rows * Apart + Lane % Rows : TW_LANES - 1)...);
}

// Columns of few rows, one after another in memory. `to` has room for a vector behind the last element.
template <int Rows, class T>
TW_INLINE void interleave_block(const T* from, i64 from_stride, T* to) {
  constexpr int kApart = Rows <= 2 ? 2 : Rows <= 4 ? 4 : Rows <= 8 ? 8 : 16;
  vec<T> rows[kApart];
#pragma clang loop unroll(full)
  for (int i = 0; i < kApart; ++i) rows[i] = i < Rows ? load(from + i * from_stride) : vec<T>(0);
  zip_rows(rows);
  constexpr int kPacked = TW_LANES / kApart * Rows;  // elements of a vector, but for those that are missing
#pragma clang loop unroll(full)
  for (int i = 0; i < kApart; ++i)
    store(to + i * kPacked, Rows == kApart ? rows[i] : pack_groups<Rows, kApart>(rows[i], LaneNumbers{}));
}

// Rows of a buffer are whole vectors, and loops compute all lanes of these: behind the last element stand
// zeros, since numbers that were left there may be subnormal, which takes a processor hundreds of cycles.
template <int Rows, int Columns, class T>
TW_INLINE void clear_behind(T* to, i64 stride) {
  constexpr i64 kWhole = (Columns + TW_LANES - 1) / TW_LANES * TW_LANES;
  if (Columns == kWhole || stride < kWhole) return;
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = Columns; c < kWhole; ++c) to[r * stride + c] = T(0);
}

template <int Rows, int Columns, class T>
static void transpose(const T* from, i64 from_stride, T* to, i64 to_stride) {
  constexpr int kLastRows = Rows % TW_LANES, kLastColumns = Columns % TW_LANES;
  constexpr i64 kRows = Rows / TW_LANES * TW_LANES, kColumns = Columns / TW_LANES * TW_LANES;
  for (i64 r = 0; r < kRows; r += TW_LANES)
    for (i64 c = 0; c < kColumns; c += TW_LANES)
      transpose_block(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  if constexpr (Rows < TW_LANES && Rows > 1)
    if (to_stride == Rows) {
      for (i64 c = 0; c < kColumns; c += TW_LANES)
        interleave_block<Rows>(from + c, from_stride, to + c * Rows);
      for (i64 c = kColumns; c < Columns; ++c)
        for (i64 r = 0; r < Rows; ++r) to[c * Rows + r] = from[r * from_stride + c];
      return;
    }
  if constexpr (kLastRows > 0)
    for (i64 c = 0; c < kColumns; c += TW_LANES)
      transpose_edge<kLastRows, TW_LANES>(from + kRows * from_stride + c, from_stride,
                                          to + c * to_stride + kRows, to_stride);
  if constexpr (kLastColumns > 0)
    for (i64 r = 0; r < kRows; r += TW_LANES)
      transpose_edge<TW_LANES, kLastColumns>(from + r * from_stride + kColumns, from_stride,
                                             to + kColumns * to_stride + r, to_stride);
  if constexpr (kLastRows > 0 && kLastColumns > 0)
    transpose_edge<kLastRows, kLastColumns>(from + kRows * from_stride + kColumns, from_stride,
                                            to + kColumns * to_stride + kRows, to_stride);
  clear_behind<Columns, Rows>(to, to_stride);
}

// A row of `Columns` elements, and as much of it again as a vector reaches behind any of them.
template <int Columns, class T>
TW_INLINE void repeat_row(const T* row, T* to) {
  for (i64 i = 0; i < Columns; ++i) to[i] = row[i];
  for (i64 i = Columns; i < Columns + TW_LANES; ++i) to[i] = to[i - Columns];
}
// Each element of a column `Columns` times; `to` has room for a vector behind the last.
template <int Columns, class T>
TW_INLINE void repeat_elements(const T* column, i64 step, i64 rows, T* to) {
  for (i64 r = 0; r < rows; ++r)
    for (i64 c = 0; c < Columns; c += TW_LANES) store(to + r * Columns + c, vec<T>(column[r * step]));
}

// The same elements in row-major order.
template <int FromRows, int FromColumns, int ToRows, int ToColumns, class T>
static void reshape(const T* from, i64 from_stride, T* to, i64 to_stride) {
  static_assert(FromRows * FromColumns == ToRows * ToColumns);
  for (i64 i = 0; i < i64(FromRows) * FromColumns; ++i)
    to[i / ToColumns * to_stride + i % ToColumns] = from[i / FromColumns * from_stride + i % FromColumns];
  clear_behind<ToRows, ToColumns>(to, to_stride);
}

}  // namespace tw
