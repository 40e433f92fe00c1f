// Inclusive scans within a vector, continued from the vectors before.
#pragma once
#include "tw_cpu/reduce.h"

namespace tw {

// A vector of whose lanes the compiler knows nothing. What is shifted in would be expanded under a mask else,
// where it is known to be zeros: that takes several times as long as a shift of two vectors (a running sum of
// 65536 f32 on Zen 5 in 32.0 µs, so in 14.2).
template <class V>
TW_INLINE V unknown(V x) {
#ifdef TW_AVX512
  if constexpr (sizeof(V) == 64) asm("" : "+v"(x));
#endif
  return x;
}

// Lane i becomes the combination of lanes 0 … i: in step s each lane takes in the one 2^s before it.
template <class Combine, class V>
TW_INLINE V prefix(V x, V identity) {
#if TW_LANES == 16
  identity = unknown(identity);
  x = Combine::apply(
      x, __builtin_shufflevector(identity, x, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30));
  x = Combine::apply(
      x, __builtin_shufflevector(identity, x, 0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29));
  x = Combine::apply(
      x, __builtin_shufflevector(identity, x, 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27));
  return Combine::apply(
      x, __builtin_shufflevector(identity, x, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23));
#elif TW_LANES == 8
  x = Combine::apply(x, __builtin_shufflevector(identity, x, 0, 8, 9, 10, 11, 12, 13, 14));
  x = Combine::apply(x, __builtin_shufflevector(identity, x, 0, 1, 8, 9, 10, 11, 12, 13));
  return Combine::apply(x, __builtin_shufflevector(identity, x, 0, 1, 2, 3, 8, 9, 10, 11));
#else
  x = Combine::apply(x, __builtin_shufflevector(identity, x, 0, 4, 5, 6));
  return Combine::apply(x, __builtin_shufflevector(identity, x, 0, 1, 4, 5));
#endif
}

// `carry` is what came before and becomes what comes after. Lane 0 has nothing before it in the vector, so
// what fills in must leave every value as it is.
template <class Combine, class V, class T>
TW_INLINE V scan(V x, V identity, T& carry) {
  const V result = Combine::apply(prefix<Combine>(x, identity), V(carry));
  carry = result[TW_LANES - 1];
  return result;
}
template <class V, class T>
TW_INLINE V scan_sum(V x, T& carry) {
  return scan<Add>(x, V(0), carry);
}
// Sums of f32 carry what came before in f64: millions of roundings of the running sum would add up.
TW_INLINE vf32 scan_sum(vf32 x, f64& carry) {
  const vf32 within = prefix<Add>(x, vf32(0.f));
  const vf32 result = within + vf32((f32)carry);
  carry += (f64)within[TW_LANES - 1];
  return result;
}
template <class V, class T>
TW_INLINE V scan_prod(V x, T& carry) {
  return scan<Multiply>(x, V(1), carry);
}
// The extreme of a value and itself is that value: what fills in is the vector itself, and not the carry, for
// which every step would wait.
template <class V, class T>
TW_INLINE V scan_max(V x, T& carry) {
  return scan<Maximum>(x, x, carry);
}
template <class V, class T>
TW_INLINE V scan_min(V x, T& carry) {
  return scan<Minimum>(x, x, carry);
}

}  // namespace tw
