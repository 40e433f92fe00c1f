// dot: c += a · b for a block of c in the caches.
//
// b is packed once into panels, a by a few rows at a time where it is not read in place. Then a block of c,
// as large as the registers hold beside a step's words, is added to along the whole inner dimension before it
// is stored again.
#pragma once
#include "tw_cpu/dot_pack.h"
#include "tw_cpu/dot_tiles.h"

namespace tw {

// Rows of c in registers, and rows of a that are packed together: a few blocks, and whole vectors where a is
// transposed.
constexpr int kDotRows = 6, kDotPackedRows = 48;

// Bytes of a panel of b that stays in a first-level cache of 32 KiB beside the rows of a that pass it.
constexpr i64 kDotNearBytes = 32 * 1024;
// Up to so many rows of a (of 8 to 480 that were measured, docs/notes/2026-11-29-products-where-they-lie.md)
// b is read where it stands: packing it takes longer than what its rows being apart costs.
constexpr int kDotFewRows = 96;

// Vectors of a row of c in registers: 6 x 4 registers of sums, 4 of b and an element of a make 29 of 32;
// 6 x 2, 2 and one make 15 of 16.
template <class E>
constexpr int dot_vectors = (TW_LANES == 16 ? 16 : 8) / (int)sizeof(typename E::sum);

// What is packed of b and of a, in words: `Depth` elements along the inner dimension at most.
template <class E, int Columns, int Depth>
struct DotRoom {
  // Panels of even widths, of which the last may be narrower. Fewer columns than registers have room for
  // leave them to more rows: as many chains of sums hide an addition's latency.
  static constexpr int kColumnVectors = (Columns + TW_LANES - 1) / TW_LANES;
  static constexpr int kPanels = (kColumnVectors + dot_vectors<E> - 1) / dot_vectors<E>;
  static constexpr int kVectors = (kColumnVectors + kPanels - 1) / kPanels;
  static constexpr int kLastVectors = kColumnVectors - (kPanels - 1) * kVectors;
  static constexpr int kFitting = kDotRows * dot_vectors<E> / kVectors;
  static constexpr int kRows = kFitting < 2 * kDotRows ? kFitting : 2 * kDotRows;
  static_assert(kDotPackedRows % kRows == 0);
  static constexpr i64 kSteps = ((Depth + E::kDepth - 1) / E::kDepth + TW_LANES - 1) / TW_LANES * TW_LANES;
  static constexpr i64 kWidth = kVectors * TW_LANES;
  static constexpr i64 kPanel = (kSteps + E::kCorrects) * kWidth;
  static constexpr i64 kRight = kPanels * kPanel;
  static constexpr i64 kBytes = dot_room_bytes<E, Columns, Depth>(kRight * (i64)sizeof(typename E::word));
  static constexpr i64 kStride = kSteps + TW_LANES;  // rows of a power of two would meet in the cache
};

// A block of c: `Vectors` vectors of `Rows` rows, in which `columns` columns are.
template <class E, DotStart Start, DotEnd End, int Rows, int Vectors, i64 Stride, i64 Width>
static __attribute__((noinline)) void dot_block(const typename E::word* left, const typename E::word* right,
                                                typename E::sum* c, i64 c_stride, i64 columns, i64 steps,
                                                i64 step) {
  static_assert(End == DotEnd::beyond || Start == DotStart::zeros);
  vec<typename E::sum> sum[Rows][Vectors];
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = Start == DotStart::zeros ? vec<typename E::sum>(0) : load(c + r * c_stride + v * TW_LANES);
  if constexpr (E::kCorrects) {
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v) sum[r][v] -= bits_as<vi32>(load(right + v * TW_LANES));
    right += Width;
  }
  for (i64 k = 0; k < steps; ++k) {
    vec<typename E::word> row[Vectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v) row[v] = load(right + k * step + v * TW_LANES);
#pragma clang loop unroll(full)
    for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = E::add(sum[r][v], vec<typename E::word>(left[r * Stride + k]), row[v]);
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < Rows; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < Vectors; ++v)
      if (End == DotEnd::within && v + 1 == Vectors)
        store(c + r * c_stride + v * TW_LANES, sum[r][v], lanes_below(columns - v * TW_LANES));
      else
        store(c + r * c_stride + v * TW_LANES, sum[r][v]);
}

// `Rows` rows of c, all columns, of which there are `Columns` where that is known. `Stride`: from one row of
// a to the next.
template <class E, class Room, DotStart Start, DotEnd End, int Rows, i64 Stride, int Columns>
static void dot_rows(const typename E::word* left, const typename E::word* right, typename E::sum* c,
                     i64 c_stride, i64 columns, i64 steps, i64 step) {
  constexpr i64 kWidth = Room::kWidth;
  constexpr int kVectors = Room::kVectors, kLast = Room::kLastVectors;
  // All the columns that the room is for: the last panel is the only narrower one.
  constexpr bool kAll = Columns > 0 && (Columns + TW_LANES - 1) / TW_LANES == Room::kColumnVectors;
  for (i64 n = 0; n < columns; n += kWidth, right += Room::kPanel) {
    if (columns - n > kWidth - TW_LANES) {
      dot_block<E, Start, End, Rows, kVectors, Stride, kWidth>(left, right, c + n, c_stride, columns - n,
                                                               steps, step);
      continue;
    }
    if constexpr (kLast > 1 && kLast < kVectors)
      if (columns - n > (kLast - 1) * TW_LANES && columns - n <= kLast * TW_LANES) {
        dot_block<E, Start, End, Rows, kLast, Stride, kWidth>(left, right, c + n, c_stride, columns - n,
                                                              steps, step);
        continue;
      }
    if constexpr (!kAll || (kLast == 1 && kVectors > 1))
      for (i64 v = 0; n + v < columns; v += TW_LANES)
        dot_block<E, Start, End, Rows, 1, Stride, kWidth>(left, right + v, c + n + v, c_stride,
                                                          columns - n - v, steps, step);
  }
}

// The panel of b's columns from n on, with what they correct in front.
template <class Room, class B>
static void dot_pack_panel(const B& b, i64 n, i64 steps, typename B::word* right) {
  typedef typename B::element E;
  typename E::word* panel = right + E::kCorrects * Room::kWidth;
  pack_right<Room::kWidth>(b, n, steps, panel);
  if constexpr (E::kCorrects)
    for (i64 v = 0; v < Room::kWidth; v += TW_LANES) {
      vec<typename E::sum> column = vec<typename E::sum>(0);
      for (i64 k = 0; k < steps; ++k)
        column = E::add(column, vu32(E::kCorrection), load(panel + k * Room::kWidth + v));
      store(right + v, bits_as<vec<typename E::word>>(column));
    }
}
template <class Room, class B>
static void dot_pack_right(const B& b, i64 steps, typename B::word* right) {
  for (i64 n = 0; n < b.outer; n += Room::kWidth, right += Room::kPanel)
    dot_pack_panel<Room>(b, n, steps, right);
}

// `rows` rows of c, a block of them at a time. `Rows` and `Columns`: how many they are in all, 0 where that
// is asked; what is called in turn takes kDotPackedRows of them but for the last time.
template <class E, class Room, DotStart Start, DotEnd End, i64 Stride, int Rows, int Columns>
static void dot_all_rows(const typename E::word* left, const typename E::word* right, typename E::sum* c,
                         i64 c_stride, i64 rows, i64 columns, i64 steps, i64 step) {
  // Rows beside whole blocks: of sums in registers, and of six.
  constexpr int kRest = Rows % Room::kRows;
  constexpr bool kTwice = Room::kRows == 2 * kDotRows;
  constexpr int kFew = kTwice ? kRest % kDotRows : kRest;
  i64 r = 0;
  const auto by = [&]<int N> {
    for (; r + N <= rows; r += N)
      dot_rows<E, Room, Start, End, N, Stride, Columns>(left + r * Stride, right, c + r * c_stride, c_stride,
                                                        columns, steps, step);
  };
  if constexpr (Rows == 0 || Rows >= Room::kRows) by.template operator()<Room::kRows>();
  if constexpr (kTwice && (Rows == 0 || kRest >= kDotRows)) by.template operator()<kDotRows>();
  if constexpr (kFew >= 4) by.template operator()<4>();
  if constexpr (Rows == 0 || kFew % 4 >= 2) by.template operator()<2>();
  if constexpr (Rows == 0 || kFew % 2 == 1) by.template operator()<1>();
}

// Whether some of b's panels are read where they stand: its columns are neighbours, and multiplied as they
// are stored, by few rows.
template <class A, class B>
constexpr bool dot_in_place =
    __is_same(typename B::element::word, typename B::element::stored) && B::element::kDepth == 1 &&
    B::kInner != Neighbours::together && A::kOuter > 0 && A::kOuter <= kDotFewRows;

// `rows` rows of c by all panels of b, which a part of the caches holds meanwhile. `multiply` takes a panel's
// first word, from one step to the next in it, its first column and their number. Panels are packed the
// `first` time.
template <class Room, bool InPlace, class B, class Multiply>
static void dot_by_panels(const B& b, i64 steps, typename B::word* right, bool first,
                          const Multiply& multiply) {
  for (i64 n = 0; n < b.outer; n += Room::kWidth, right += Room::kPanel) {
    const i64 columns = b.outer - n < Room::kWidth ? b.outer - n : Room::kWidth;
    if constexpr (InPlace)
      if (b.outer_stride == 1 && steps <= b.inner && columns % TW_LANES == 0) {
        multiply(b.at + n, b.inner_stride, n, columns);
        continue;
      }
    if (first) dot_pack_panel<Room>(b, n, steps, right);
    multiply(right, Room::kWidth, n, columns);
  }
}

// dot by vector registers: rows of a are packed a few at a time. A panel of b that the first-level cache
// holds is multiplied by all of these while it is there, a larger one by a block of them.
template <class Room, DotStart Start, DotEnd End, class A, class B>
static void dot_by_vectors(const A& a, const B& b, typename B::element::sum* c, i64 c_stride,
                           typename B::word* right) {
  typedef typename B::element E;
  constexpr bool kNear = Room::kPanel * (i64)sizeof(typename E::word) <= kDotNearBytes;
  alignas(64) typename E::word left[kDotPackedRows * Room::kStride];
  const i64 inner = a.inner > b.inner ? a.inner : b.inner, steps = (inner + E::kDepth - 1) / E::kDepth;
  if constexpr (!kNear && !dot_in_place<A, B>) dot_pack_right<Room>(b, steps, right);
  for (i64 m = 0; m < a.outer; m += kDotPackedRows) {
    pack_left<kDotPackedRows, Room::kStride>(a, m, steps, left);
    const i64 rows = a.outer - m < kDotPackedRows ? a.outer - m : kDotPackedRows;
    const auto multiply = [&](const typename E::word* panel, i64 step, i64 n, i64 columns) {
      dot_all_rows<E, Room, Start, End, Room::kStride, A::kOuter, B::kOuter>(
          left, panel, c + m * c_stride + n, c_stride, rows, columns, steps, step);
    };
    if constexpr (kNear || dot_in_place<A, B>)
      dot_by_panels<Room, dot_in_place<A, B>>(b, steps, right, m == 0, multiply);
    else
      multiply(right, Room::kWidth, 0, b.outer);
  }
}

// Zeros behind the rows and columns of c that there are.
template <int Rows, int Columns, class T>
static void dot_clear_rest(T* c, i64 c_stride, i64 rows, i64 columns) {
  for (i64 r = 0; r < Rows; ++r)
    for (i64 n = r < rows ? columns : 0; n < Columns; ++n) c[r * c_stride + n] = T(0);
}

// c[m][n] += Σ a[m][k] b[k][n] over a's rows and b's columns that exist (`=` for DotStart::zeros); c's rows
// have room for whole vectors (or end: DotEnd), `room` for DotRoom::kRight words. a may be stored in another
// type of the same words.
template <int Columns, int Depth, DotStart Start = DotStart::sums, DotEnd End = DotEnd::beyond, class A,
          class B>
static void dot(const A& a, const B& b, typename B::element::sum* c, i64 c_stride, void* room) {
  typedef typename B::element E;
  static_assert(End == DotEnd::beyond || !TilesOf<E>::kThere);
  if constexpr (TilesOf<E>::kThere)
    return dot_by_tiles<Columns, Depth, Start>(as_tiles(a), as_tiles(b), c, c_stride, room);
  else
    dot_by_vectors<DotRoom<E, Columns, Depth>, Start, End>(a, b, c, c_stride, (typename E::word*)room);
}

// The same with a in the caches, its words as they are multiplied, `Stride` of them from one row to the next
// and not fewer in a row than b has: it is read where it stands.
template <int Columns, int Depth, int Stride, DotStart Start = DotStart::sums, DotEnd End = DotEnd::beyond,
          class A, class B>
static void dot_of_rows(const A& a, const B& b, typename B::element::sum* c, i64 c_stride, void* room) {
  typedef typename B::element E;
  static_assert(__is_same(typename E::word, typename E::stored) && E::kDepth == 1);
  typedef DotRoom<E, Columns, Depth> Room;
  auto* right = (typename E::word*)room;
  const auto multiply = [&](const typename E::word* panel, i64 step, i64 n, i64 columns) {
    dot_all_rows<E, Room, Start, End, Stride, A::kOuter, B::kOuter>(a.at, panel, c + n, c_stride, a.outer,
                                                                    columns, a.inner, step);
  };
  if constexpr (dot_in_place<A, B>) {
    dot_by_panels<Room, true>(b, a.inner, right, /*first=*/true, multiply);
  } else {
    dot_pack_right<Room>(b, a.inner, right);
    multiply(right, Room::kWidth, 0, b.outer);
  }
}

}  // namespace tw
