// Vectors for generated CPU kernels: types, bit casts, selection, fused multiply-add, minimum and maximum. Clang's vector
// extensions and builtins only. Every other tw_cpu header includes this one; a kernel includes those that it uses.
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

#define TW_INLINE static inline __attribute__((always_inline))
#define TW_COLD static __attribute__((noinline, cold))
#define TW_VECTOR(type) type __attribute__((ext_vector_type(TW_LANES)))

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

typedef TW_VECTOR(i8) vi8;
typedef TW_VECTOR(u8) vu8;
typedef TW_VECTOR(i16) vi16;
typedef TW_VECTOR(u16) vu16;
typedef TW_VECTOR(i32) vi32;
typedef TW_VECTOR(u32) vu32;
typedef TW_VECTOR(i64) vi64;
typedef TW_VECTOR(u64) vu64;
typedef TW_VECTOR(f32) vf32;
typedef TW_VECTOR(f64) vf64;
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
TW_INLINE vmask first_lanes(i64 count) { return iota() < vi32((i32)count); }

// Comparisons of any element type as a mask.
template <class V>
TW_INLINE vmask lt(V a, V b) { return convert<vmask>(a < b); }
template <class V>
TW_INLINE vmask le(V a, V b) { return convert<vmask>(a <= b); }
template <class V>
TW_INLINE vmask eq(V a, V b) { return convert<vmask>(a == b); }
template <class V>
TW_INLINE vmask ne(V a, V b) { return convert<vmask>(a != b); }
template <class V>
TW_INLINE V select(vmask mask, V a, V b) {
  return convert<decltype(a == b)>(mask) ? a : b;
}
TW_INLINE bool any(vmask mask) { return __builtin_reduce_or(mask) != 0; }
TW_INLINE bool all(vmask mask) { return __builtin_reduce_and(mask) != 0; }

// One rounding on every target. Without FMA instructions f32 goes through f64: slow, and for the baseline only.
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
TW_INLINE V polynomial(V, V last) { return last; }
template <class V, class... C>
TW_INLINE V polynomial(V x, V c0, C... more) {
  return mad(polynomial(x, V(more)...), x, c0);
}

constexpr i32 kSignBit = (i32)0x80000000;
TW_INLINE vf32 abs(vf32 x) { return bits_as<vf32>(bits_as<vi32>(x) & ~kSignBit); }
TW_INLINE vf32 negate_where(vmask mask, vf32 x) { return bits_as<vf32>(bits_as<vi32>(x) ^ (mask & kSignBit)); }
// The magnitude of x (which is not negative) with the sign of `sign`.
TW_INLINE vf32 with_sign(vf32 x, vf32 sign) {
  return bits_as<vf32>(bits_as<vi32>(x) | (bits_as<vi32>(sign) & kSignBit));
}

// Of vectors and scalars. NaN if either is NaN; which zero min(-0, +0) gives is open.
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
// With a limit that is not NaN: one instruction; NaN in x passes.
template <class V>
TW_INLINE V at_most(V x, V limit) { return limit < x ? limit : x; }
template <class V>
TW_INLINE V at_least(V x, V limit) { return limit > x ? limit : x; }

// table[index & 15] in each lane.
TW_INLINE vf32 lookup16(const f32 (&table)[16], vi32 index) {
#if TW_AVX512
  return (vf32)__builtin_ia32_permvarsf512(*(const vf32*)table, index);
#elif TW_AVX2
  const vf32 low = (vf32)__builtin_ia32_permvarsf256(*(const vf32*)table, index);
  const vf32 high = (vf32)__builtin_ia32_permvarsf256(*(const vf32*)(table + 8), index);
  return (index << 28) < 0 ? high : low;
#else
  vf32 found;
#pragma unroll
  for (int lane = 0; lane < TW_LANES; ++lane) found[lane] = table[index[lane] & 15];
  return found;
#endif
}

}  // namespace tw
