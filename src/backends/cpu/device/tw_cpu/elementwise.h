// Rounding, signs, integer division and shifts, for vectors and scalars alike.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

template <class V>
TW_INLINE V floor(V x) {
  return __builtin_elementwise_floor(x);
}
template <class V>
TW_INLINE V ceil(V x) {
  return __builtin_elementwise_ceil(x);
}
template <class V>
TW_INLINE V trunc(V x) {
  return __builtin_elementwise_trunc(x);
}
// The nearest whole number, of two as near the even one.
template <class V>
TW_INLINE V round(V x) {
  return __builtin_elementwise_roundeven(x);
}
template <class V>
TW_INLINE V reciprocal(V x) {
  return 1 / x;
}

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<f32> = true;
template <>
inline constexpr bool kIsFloat<f64> = true;
template <class T>
struct LaneOf {
  typedef T type;
};
template <class T, int N>
struct LaneOf<T __attribute__((ext_vector_type(N)))> {
  typedef T type;
};
template <class V>
using Lane = typename LaneOf<V>::type;

// -1, 0 or 1; NaN stays NaN.
template <class V>
TW_INLINE V sign(V x) {
  const V unit = x > V(0) ? V(1) : V(0);
  const V result = x < V(0) ? V(-1) : unit;
  return x == x ? result : x;
}

template <class V>
TW_INLINE V div_lane(V a, V b) {
  // -2^31 / -1 wraps around like a negation.
  if (b == 0) return 0;
  return b == V(-1) && V(-1) < V(0) ? V(0u - (u64)a) : V(a / b);
}
template <class V>
TW_INLINE V rem_lane(V a, V b) {
  if (b == 0) return a;
  return b == V(-1) && V(-1) < V(0) ? V(0) : V(a % b);
}
extern "C" float fmodf(float, float);
extern "C" double fmod(double, double);
TW_INLINE f32 rem_lane(f32 a, f32 b) { return fmodf(a, b); }
TW_INLINE f64 rem_lane(f64 a, f64 b) { return fmod(a, b); }

// Truncates toward zero; x / 0 = 0 for integers.
template <class V>
TW_INLINE V div(V a, V b) {
  if constexpr (kIsFloat<Lane<V>>) {
    return a / b;
  } else if constexpr (sizeof(V) == sizeof(Lane<V>)) {
    return div_lane(a, b);
  } else {
    for (int lane = 0; lane < TW_LANES; ++lane) a[lane] = div_lane<Lane<V>>(a[lane], b[lane]);
    return a;
  }
}
// Lane by lane: the sign of a; x rem 0 = x for integers.
template <class V>
TW_INLINE V rem_lanes(V a, V b) {
  for (int lane = 0; lane < TW_LANES; ++lane) a[lane] = rem_lane(Lane<V>(a[lane]), Lane<V>(b[lane]));
  return a;
}
template <class V>
TW_COLD void rem_of_far_lanes(V& a, const V& b) {
  a = rem_lanes(a, b);
}
// The remainder of floats, which is a float, without a rounding. The rounded quotient of |a| >= |b|, cut to a
// whole number q, is exact or one too large where it is below 2^digits: a whole number is never rounded away.
// |a| - q |b| is then a multiple of b's last place between -|b| and |b|, which one fused step gives as it is,
// and so is what |b| makes of a negative one. Of zero, infinity and NaN the same steps make what they should:
// only larger quotients go lane by lane.
template <class V>
TW_INLINE V rem_of_floats(V a, V b, Lane<V> most) {
  const V top = abs(a), by = abs(b), quotient = top / by;
  if (__builtin_expect(any(le(V(most), quotient)), 0)) {
    rem_of_far_lanes(a, b);
    return a;
  }
  V rest;
  if constexpr (sizeof(Lane<V>) == sizeof(f32))
    rest = fma(-trunc(quotient), by, top);
  else
    rest = mad(-trunc(quotient), by, top);  // fused: see rem()
  const V inside = select(lt(rest, V(0)), rest + by, rest);
  return with_sign(select(lt(top, by), top, inside), a);
}
// The sign of a; x rem 0 = x for integers.
template <class V>
TW_INLINE V rem(V a, V b) {
  if constexpr (sizeof(V) == sizeof(Lane<V>)) {
    return rem_lane(a, b);
  } else if constexpr (sizeof(Lane<V>) == sizeof(f32) && kIsFloat<Lane<V>>) {
    return rem_of_floats(a, b, 0x1p24f);
#ifdef __FMA__
  } else if constexpr (kIsFloat<Lane<V>>) {
    return rem_of_floats(a, b, 0x1p53);
#endif
  } else {
    return rem_lanes(a, b);
  }
}

// Counts are taken modulo the width.
template <class V>
TW_INLINE V shl(V a, V b) {
  return V(a << (b & V(8 * sizeof(Lane<V>) - 1)));
}
template <class V>
TW_INLINE V shr(V a, V b) {
  return V(a >> (b & V(8 * sizeof(Lane<V>) - 1)));
}

}  // namespace tw
