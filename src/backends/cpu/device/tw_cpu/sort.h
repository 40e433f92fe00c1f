// Positions in the order of their elements: each line is copied out as pairs of a key and a position, which
// are sorted digit by digit from the lowest one (H. Seward, 1954; D. Knuth, The Art of Computer Programming,
// volume 3, 5.2.5). That keeps the order of equal keys and takes as many walks as a key has bytes.
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

template <class Key>
static void insertion_sort(Keyed<Key>* x, i64 n) {
  for (i64 i = 1; i < n; ++i) {
    const Keyed<Key> moved = x[i];
    i64 at = i;
    for (; at > 0 && moved.key < x[at - 1].key; --at) x[at] = x[at - 1];
    x[at] = moved;
  }
}

// Sorts x with the help of `other`; returns whichever of the two holds the result.
template <class Key>
static Keyed<Key>* sort_by_key(Keyed<Key>* x, Keyed<Key>* other, i64 n) {
  constexpr i64 kShort = 48;  // chosen: below it counting 256 digits costs more than it saves
  constexpr int kDigits = sizeof(Key);
  if (n <= kShort) {
    insertion_sort(x, n);
    return x;
  }
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
  Keyed<Key>* const copy = (Keyed<Key>*)room;
  for (i64 line = 0; line < in.count; ++line) {
    for (i64 i = 0; i < in.length; ++i) {
      const Key key = sort_key(from[line * in.line_step + i * in.element_step]);
      copy[i] = {Descending ? Key(~key) : key, i32(i)};
    }
    const Keyed<Key>* sorted = sort_by_key(copy, copy + in.length, in.length);
    for (i64 i = 0; i < in.length; ++i) to[line * out.line_step + i * out.element_step] = sorted[i].position;
  }
}

}  // namespace tw
