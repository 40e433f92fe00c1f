// Positions in the order of their elements. A short line's elements are told by how many stand before them
// (D. Knuth, The Art of Computer Programming, volume 3, 5.2, algorithm C). A longer line is copied out as
// pairs of a key and a position, which are sorted digit by digit from the lowest one (H. Seward, 1954;
// Knuth, 5.2.5). That keeps the order of equal keys and takes as many walks as a key has bytes.
#pragma once
#include "tw_cpu/relayout.h"

namespace tw {

// Unsigned keys whose order is that of the elements: of floats -0 is 0 and NaN is the largest.
TW_INLINE u32 sort_key(f32 x) {
  const u32 bits = bits_as<u32>(x == 0 ? 0.f : x), sign = 1u << 31;
  return x != x ? ~0u : bits & sign ? ~bits : bits | sign;
}
TW_INLINE u64 sort_key(f64 x) {
  const u64 bits = bits_as<u64>(x == 0 ? 0. : x), sign = 1ul << 63;
  return x != x ? ~0ul : bits & sign ? ~bits : bits | sign;
}
TW_INLINE u8 sort_key(u8 x) { return x; }
TW_INLINE u8 sort_key(i8 x) { return u8(x) ^ 0x80; }
TW_INLINE u32 sort_key(i32 x) { return u32(x) ^ (1u << 31); }
TW_INLINE u64 sort_key(i64 x) { return u64(x) ^ (1ul << 63); }

template <class Key>
struct Keyed {
  Key key;
  i32 position;
};

// As many elements as are sooner compared with one another, a vector at a time, than their digits counted
// (docs/notes/2026-11-30-long-rows.md).
template <class Key>
inline constexpr i64 kMostRanked = TW_LANES * (sizeof(Key) == 1   ? 2
                                               : sizeof(Key) == 4 ? 5
                                                                  : 8);

// The places of the keys in their order; of equal keys the first one stands first. Behind the last key there
// is room for a vector.
template <class Key>
static void positions_by_rank(const Key* keys, i64 n, i32* to, i64 step) {
  for (i64 first = 0; first < n; first += TW_LANES) {
    const i64 end = first + TW_LANES < n ? first + TW_LANES : n;
    const vec<Key> own = load(keys + first);
    vi32 rank = vi32(0);
    for (i64 j = 0; j < first; ++j) rank -= le(vec<Key>(keys[j]), own);
    for (i64 j = first; j < end; ++j) {
      const vec<Key> other = vec<Key>(keys[j]);
      rank -= lt(other, own) | (eq(other, own) & (iota() > vi32(i32(j - first))));
    }
    for (i64 j = end; j < n; ++j) rank -= lt(vec<Key>(keys[j]), own);
    for (i64 i = first; i < end; ++i) to[i64(rank[i - first]) * step] = i32(i);
  }
}

// Sorts x with the help of `other`; returns whichever of the two holds the result.
template <class Key>
static Keyed<Key>* sort_by_key(Keyed<Key>* x, Keyed<Key>* other, i64 n) {
  constexpr int kDigits = sizeof(Key);
  u32 count[kDigits][256] = {};
  for (i64 i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++count[d][x[i].key >> (8 * d) & 255];
  for (int d = 0; d < kDigits; ++d) {
    if (count[d][x[0].key >> (8 * d) & 255] == n) continue;  // all have this digit
    u32 before = 0;
    for (u32& c : count[d]) {
      const u32 own = c;
      c = before;
      before += own;
    }
    for (i64 i = 0; i < n; ++i) other[count[d][x[i].key >> (8 * d) & 255]++] = x[i];
    Keyed<Key>* sorted = other;
    other = x;
    x = sorted;
  }
  return x;
}

// One axis of a tile: how far its elements lie apart in memory, and how far the lines along it.
struct Lines {
  i64 count, length, element_step, line_step;
};

// `room` is for two copies of a line.
template <bool Descending, class T>
static void argsort(const T* from, const Lines& in, i32* to, const Lines& out, void* room) {
  using Key = decltype(sort_key(T()));
  const auto key_at = [=](i64 line, i64 i) {
    const Key key = sort_key(from[line * in.line_step + i * in.element_step]);
    return Descending ? Key(~key) : key;
  };
  if (in.length <= kMostRanked<Key>) {
    Key keys[kMostRanked<Key> + TW_LANES] = {};
    for (i64 line = 0; line < in.count; ++line) {
      for (i64 i = 0; i < in.length; ++i) keys[i] = key_at(line, i);
      positions_by_rank(keys, in.length, to + line * out.line_step, out.element_step);
    }
    return;
  }
  Keyed<Key>* const copy = (Keyed<Key>*)room;
  for (i64 line = 0; line < in.count; ++line) {
    for (i64 i = 0; i < in.length; ++i) copy[i] = {key_at(line, i), i32(i)};
    const Keyed<Key>* sorted = sort_by_key(copy, copy + in.length, in.length);
    for (i64 i = 0; i < in.length; ++i) to[line * out.line_step + i * out.element_step] = sorted[i].position;
  }
}

}  // namespace tw
