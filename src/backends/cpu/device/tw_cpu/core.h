// Vectors for generated CPU kernels: types, bit casts, selection, fused multiply-add, minimum and maximum.
// Clang's vector extensions and builtins only. Every other tw_cpu header includes this one; a kernel includes
// those that it uses.
#pragma once

// Lanes of every vector, whatever its element type: one register of f32, two of f64.
#ifndef TW_LANES
#if defined(__AVX512F__)
#define TW_LANES 16
#elif defined(__AVX2__)
#define TW_LANES 8
#else
#define TW_LANES 4
#endif
#endif
// Instructions on whole registers of 512 (or 256) bits may be named directly.
#if TW_LANES == 16 && defined(__AVX512BW__)
#define TW_AVX512 1
#elif TW_LANES == 8 && defined(__AVX2__)
#define TW_AVX2 1
#endif
// Instructions on tile registers may be named, too (dot_tiles.h).
#if defined(TW_AVX512) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
#define TW_TILES 1
#endif

#define TW_INLINE static inline __attribute__((always_inline))
#define TW_COLD static __attribute__((noinline, cold))

namespace tw {

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;

template <class T>
using vec = T __attribute__((ext_vector_type(TW_LANES)));
typedef vec<i8> vi8;
typedef vec<u8> vu8;
typedef vec<i16> vi16;
typedef vec<u16> vu16;
typedef vec<i32> vi32;
typedef vec<u32> vu32;
typedef vec<i64> vi64;
typedef vec<u64> vu64;
typedef vec<f32> vf32;
typedef vec<f64> vf64;
// Lanes that are all ones where true, all zeros elsewhere. The compiler keeps it in mask registers.
typedef vi32 vmask;

template <class To, class V>
TW_INLINE To convert(V x) {
  return __builtin_convertvector(x, To);
}
template <class To, class V>
TW_INLINE To bits_as(V x) {
  return __builtin_bit_cast(To, x);
}
TW_INLINE vi32 iota() {
#if TW_LANES == 16
  return vi32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif TW_LANES == 8
  return vi32{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return vi32{0, 1, 2, 3};
#endif
}

// Comparisons of any element type as a mask.
template <class V>
TW_INLINE vmask lt(V a, V b) {
  return convert<vmask>(a < b);
}
template <class V>
TW_INLINE vmask le(V a, V b) {
  return convert<vmask>(a <= b);
}
template <class V>
TW_INLINE vmask eq(V a, V b) {
  return convert<vmask>(a == b);
}
template <class V>
TW_INLINE vmask ne(V a, V b) {
  return convert<vmask>(a != b);
}
template <class V>
TW_INLINE V select(vmask mask, V a, V b) {
  return convert<decltype(a == b)>(mask) ? a : b;
}
// What a float is before it is converted to an integer: a NaN has no integer, not even an arbitrary one. The
// compiler takes its lane as undefined, and a choice between an undefined lane and another likewise.
template <class V>
TW_INLINE V number_or_zero(V x) {
  return select(eq(x, x), x, V(0));
}
TW_INLINE bool any(vmask mask) { return __builtin_reduce_or(mask) != 0; }
TW_INLINE bool all(vmask mask) { return __builtin_reduce_and(mask) != 0; }

// One rounding on every target. Without FMA instructions f32 goes through f64: slow, and for the baseline
// only.
TW_INLINE vf32 fma(vf32 a, vf32 b, vf32 c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  return convert<vf32>(convert<vf64>(a) * convert<vf64>(b) + convert<vf64>(c));
#endif
}
// a*b + c at the target's best speed, with one rounding or two: for polynomials.
template <class V>
TW_INLINE V mad(V a, V b, V c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}
// c0 + c1 x + c2 x² + …
template <class V>
TW_INLINE V polynomial(V, V last) {
  return last;
}
template <class V, class... C>
TW_INLINE V polynomial(V x, V c0, C... more) {
  return mad(polynomial(x, V(more)...), x, c0);
}

template <class V>
TW_INLINE V abs(V x) {
  return __builtin_elementwise_abs(x);
}
// The magnitude of x with the sign of `sign`.
template <class V>
TW_INLINE V with_sign(V x, V sign) {
  return __builtin_elementwise_copysign(x, sign);
}

// Minimum of vectors or scalars. NaN if either is NaN; which zero min(-0, +0) gives is open.
template <class V>
TW_INLINE V min(V a, V b) {
  const V least = a < b ? a : b;
  return a != a ? a : least;
}
template <class V>
TW_INLINE V max(V a, V b) {
  const V most = a > b ? a : b;
  return a != a ? a : most;
}
// Minimum of f32 lanes by the instruction, which gives its second operand where either one is NaN. That is a,
// what was found before: a NaN of b is chosen beside it, so that a chain of maxima waits for two short steps
// and not for comparisons.
TW_INLINE vf32 least_or_second(vf32 first, vf32 second) {
#ifdef TW_AVX512
  return (vf32)__builtin_ia32_minps512(first, second, /*as the thread rounds*/ 4);
#elif TW_LANES == 8
  return (vf32)__builtin_ia32_minps256(first, second);
#else
  return (vf32)__builtin_ia32_minps(first, second);
#endif
}
TW_INLINE vf32 most_or_second(vf32 first, vf32 second) {
#ifdef TW_AVX512
  return (vf32)__builtin_ia32_maxps512(first, second, /*as the thread rounds*/ 4);
#elif TW_LANES == 8
  return (vf32)__builtin_ia32_maxps256(first, second);
#else
  return (vf32)__builtin_ia32_maxps(first, second);
#endif
}
TW_INLINE vf32 min(vf32 a, vf32 b) { return select(eq(b, b), least_or_second(b, a), b); }
TW_INLINE vf32 max(vf32 a, vf32 b) { return select(eq(b, b), most_or_second(b, a), b); }
// x, but no more than a limit that is not NaN: one instruction. A NaN in x passes.
template <class V>
TW_INLINE V at_most(V x, V limit) {
  return limit < x ? limit : x;
}
template <class V>
TW_INLINE V at_least(V x, V limit) {
  return limit > x ? limit : x;
}

}  // namespace tw
