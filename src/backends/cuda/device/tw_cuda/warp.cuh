// Reductions and scans among the threads of a warp or of a power-of-two part of it, by shuffles.
#pragma once

#include "tw_cuda/arith.cuh"

namespace tw {

// Any trivially copyable T, word by word. All 32 lanes must call.
template <class T, class Shuffle>
TW_DEVICE T shuffle_words(const T& value, Shuffle shuffle) {
  if constexpr (sizeof(T) % 4 == 0) {
    auto words = bit_cast<Vec<u32, int(sizeof(T) / 4)>>(value);
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 4); ++i) words.v[i] = shuffle(words.v[i]);
    return bit_cast<T>(words);
  } else if constexpr (sizeof(T) == 2) {
    return bit_cast<T>(u16(shuffle(u32(bit_cast<u16>(value)))));
  } else {
    static_assert(sizeof(T) == 1, "shuffles take 1, 2 or a multiple of 4 bytes");
    return bit_cast<T>(u8(shuffle(u32(bit_cast<u8>(value)))));
  }
}
template <class T>
TW_DEVICE T shuffle_xor(const T& value, int lane_mask) {
  return shuffle_words(value, [&](u32 w) { return __shfl_xor_sync(kFullWarp, w, lane_mask); });
}
template <class T>
TW_DEVICE T shuffle_up(const T& value, int delta, int width = 32) {
  return shuffle_words(value, [&](u32 w) { return __shfl_up_sync(kFullWarp, w, delta, width); });
}
// The value of lane `source` of each group of `width`.
template <class T>
TW_DEVICE T shuffle_from(const T& value, int source, int width = 32) {
  return shuffle_words(value, [&](u32 w) { return __shfl_sync(kFullWarp, w, source, width); });
}

// ---- monoids: what reductions combine with
// --------------------------------------------------------------------------- The largest and smallest value
// of a type: infinities where it has them.
template <class T>
struct Limits;
template <>
struct Limits<float> {
  static TW_DEVICE float lowest() { return bits_to_f32(0xff800000u); }
  static TW_DEVICE float highest() { return bits_to_f32(0x7f800000u); }
};
template <>
struct Limits<double> {
  static TW_DEVICE double lowest() { return __longlong_as_double(0xfff0000000000000ll); }
  static TW_DEVICE double highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <>
struct Limits<i32> {
  static TW_DEVICE i32 lowest() { return -0x7fffffff - 1; }
  static TW_DEVICE i32 highest() { return 0x7fffffff; }
};
template <>
struct Limits<i64> {
  static TW_DEVICE i64 lowest() { return -0x7fffffffffffffffll - 1; }
  static TW_DEVICE i64 highest() { return 0x7fffffffffffffffll; }
};
template <>
struct Limits<i8> {
  static TW_DEVICE i8 lowest() { return -128; }
  static TW_DEVICE i8 highest() { return 127; }
};
template <>
struct Limits<u8> {
  static TW_DEVICE u8 lowest() { return 0; }
  static TW_DEVICE u8 highest() { return 255; }
};
template <>
struct Limits<bool> {
  static TW_DEVICE bool lowest() { return false; }
  static TW_DEVICE bool highest() { return true; }
};

struct Sum {
  template <class T>
  static TW_DEVICE T identity() {
    return T(0);
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return add(a, b);
  }
};
struct Product {
  template <class T>
  static TW_DEVICE T identity() {
    return T(1);
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return mul(a, b);
  }
};
struct Max {
  template <class T>
  static TW_DEVICE T identity() {
    return Limits<T>::lowest();
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return max(a, b);
  }
};
struct Min {
  template <class T>
  static TW_DEVICE T identity() {
    return Limits<T>::highest();
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return min(a, b);
  }
};
struct And {
  template <class T>
  static TW_DEVICE T identity() {
    return T(~T(0));
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return T(a & b);
  }
};
template <>
TW_DEVICE bool And::identity<bool>() {
  return true;
}
struct Or {
  template <class T>
  static TW_DEVICE T identity() {
    return T(0);
  }
  template <class T>
  static TW_DEVICE T combine(T a, T b) {
    return T(a | b);
  }
};

// A value and where it stands. Ties go to the lower index; a NaN beats every number, the first NaN wins.
// Nothing yet stands at 0: where the least of all values is the extreme, every value is, the first among
// them.
template <class T>
struct Indexed {
  static_assert(sizeof(T) >= 4, "narrow types are computed in 32 bits");
  T value;
  i32 index;
};
template <bool kMax>
struct ArgExtreme {
  template <class P>
  static TW_DEVICE P identity() {
    using T = decltype(P::value);
    return P{kMax ? Limits<T>::lowest() : Limits<T>::highest(), 0};
  }
  // Both are selected, never branched on: an element takes two comparisons and two selections.
  template <class P>
  static TW_DEVICE P pick(bool second, P a, P b) {
    return P{second ? b.value : a.value, second ? b.index : a.index};
  }
  template <class T>
  static TW_DEVICE bool beats(T later, T earlier) {
    return !(kMax ? later <= earlier : later >= earlier) & (earlier == earlier);
  }
  template <class P>
  static TW_DEVICE P combine(P a, P b) {
    const bool tie = (a.value == b.value) | ((a.value != a.value) & (b.value != b.value));
    return pick(beats(b.value, a.value) | (tie & (b.index < a.index)), a, b);
  }
  // One more value, which stands behind all that `a` is made of.
  template <class P>
  static TW_DEVICE P take_in(P a, P later) {
    return pick(beats(later.value, a.value), a, later);
  }
};
using ArgMax = ArgExtreme<true>;
using ArgMin = ArgExtreme<false>;

// ---- reduction and scan
// ------------------------------------------------------------------------------------------------ Every lane
// gets the result of its group of kLanes neighbouring lanes (a power of two up to 32). All 32 lanes must
// call. The order of combination is fixed by the lane numbers, and the same bits reach all lanes.
template <class Op, int kLanes = 32, class T>
TW_DEVICE T warp_reduce(T value) {
  static_assert(kLanes >= 1 && kLanes <= 32 && (kLanes & (kLanes - 1)) == 0,
                "a group is a power of two of lanes");
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = Op::template combine<T>(value, shuffle_xor(value, distance));
  }
  return value;
}
// Lanes kStride apart (kLanes of them): the rows of an mma accumulator, columns of a transposed tile.
template <class Op, int kLanes, int kStride, class T>
TW_DEVICE T warp_reduce_strided(T value) {
  static_assert(kLanes * kStride <= 32, "the group lies within a warp");
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = Op::template combine<T>(value, shuffle_xor(value, distance * kStride));
  }
  return value;
}
// Lane i of each group gets the combination of lanes 0 … i. Op need not be commutative.
template <class Op, int kLanes = 32, class T>
TW_DEVICE T warp_scan(T value) {
  const int lane = int(threadIdx.x & (kLanes - 1));
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const T before = shuffle_up(value, distance, kLanes);
    if (lane >= distance) value = Op::template combine<T>(before, value);
  }
  return value;
}

}  // namespace tw
