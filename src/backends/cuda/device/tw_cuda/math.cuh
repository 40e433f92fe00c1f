// Transcendental primitives with the error bounds of tile/prim.h (f32: 2 units in the last place for most).
// CUDA's own functions are used where they are that accurate and short; the rest is ours, and says why.
#pragma once

#include "tw_cuda/arith.cuh"

namespace tw {

// CUDA's: bounds from the CUDA C++ Programming Guide, "Mathematical Functions".
TW_DEVICE float exp(float x) { return expf(x); }                  // 1 ulp: two-step reduction, ex2.approx
TW_DEVICE float expm1(float x) { return expm1f(x); }              // 1 ulp
TW_DEVICE float log(float x) { return logf(x); }                  // 1 ulp
TW_DEVICE float log2(float x) { return log2f(x); }                // 1 ulp
TW_DEVICE float log1p(float x) { return log1pf(x); }              // 1 ulp
TW_DEVICE float tanh(float x) { return tanhf(x); }                // 2 ulp
TW_DEVICE float erf(float x) { return erff(x); }                  // 2 ulp
TW_DEVICE float rsqrt(float x) { return rsqrtf(x); }              // 2 ulp
TW_DEVICE float pow(float x, float y) { return powf(x, y); }      // 4 ulp
TW_DEVICE float atan2(float y, float x) { return atan2f(y, x); }  // 3 ulp
TW_DEVICE double exp(double x) { return ::exp(x); }
TW_DEVICE double exp2(double x) { return ::exp2(x); }
TW_DEVICE double expm1(double x) { return ::expm1(x); }
TW_DEVICE double log(double x) { return ::log(x); }
TW_DEVICE double log2(double x) { return ::log2(x); }
TW_DEVICE double log1p(double x) { return ::log1p(x); }
TW_DEVICE double tanh(double x) { return ::tanh(x); }
TW_DEVICE double erf(double x) { return ::erf(x); }
TW_DEVICE double rsqrt(double x) { return ::rsqrt(x); }
TW_DEVICE double pow(double x, double y) { return ::pow(x, y); }
TW_DEVICE double atan2(double y, double x) { return ::atan2(y, x); }
TW_DEVICE double sin(double x) { return ::sin(x); }
TW_DEVICE double cos(double x) { return ::cos(x); }
TW_DEVICE double tan(double x) { return ::tan(x); }

// CUDA's exp2f errs by up to 2.4 ulp (ex2.approx). The Taylor series of 2^f, |f| <= 1/2, to the seventh power
// leaves 2^-27; the two factors keep results below the normal range. 1.5 ulp.
TW_DEVICE float exp2(float x) {
  const float bounded = fminf(fmaxf(x, -160.f), 160.f);
  const float n = rintf(bounded);
  const float f = bounded - n;
  float p = fmaf(1.5252734e-5f, f, 1.5403530e-4f);
  p = fmaf(p, f, 1.3333558e-3f);
  p = fmaf(p, f, 9.6181291e-3f);
  p = fmaf(p, f, 5.5504109e-2f);
  p = fmaf(p, f, 2.4022651e-1f);
  p = fmaf(p, f, 6.9314718e-1f);
  p = fmaf(p, f, 1.f);
  const i32 half = i32(n) >> 1;
  const float y = p * bits_to_f32(u32(half + 127) << 23) * bits_to_f32(u32(i32(n) - half + 127) << 23);
  return x == x ? y : x;
}

// Sigmoid from e = e^-|x|, which never overflows, so that the tail of the negative side keeps its small
// values: e or 1 over 1 + e, by a reciprocal that is off by 2^-23 and one step that adds what the quotient
// lacks. The quotient is rounded once; 3 ulp, of which 2 are the exponential's.
TW_DEVICE float sigmoid_by_newton(float x, float e, float guess) {
  const float numerator = x < 0.f ? e : 1.f, quotient = numerator * guess;
  return fmaf(fmaf(-quotient, 1.f + e, numerator), guess, quotient);
}
TW_DEVICE float sigmoid(float x) {
  const float e = exp(-fabsf(x));
  return sigmoid_by_newton(x, e, detail::rcp(1.f + e));
}
TW_DEVICE double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0. ? e : 1.) / (1. + e);
}

// ---- sin, cos, tan
// -----------------------------------------------------------------------------------------------------
// CUDA's sinf inlines a loop over a local array for huge arguments at every use: 30 KB of machine code in an
// unrolled kernel. Ours takes a call for those, and sin and cos of one argument share the reduction.

// x = quadrant · π/2 + rest with |rest| ≤ π/4.
struct Reduced {
  float rest;
  i32 quadrant;  // only its low two bits count
};

// 2/π in binary, most significant word first (the last one is never shifted in, only read).
static __constant__ u32 two_over_pi[7] = {0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u,
                                          0x36d8a566u, 0x4f10e410u, 0x7f9458eau};

// Payne and Hanek's reduction: multiplies the mantissa with the 96 bits of 2/π that matter for its exponent;
// what lies above are whole turns. Quadrant in the high word, bits of the rest in the low one; NaN for
// infinity and NaN.
__attribute__((const)) TW_COLD u64 reduce_huge(float x) {
  const u32 bits = f32_to_bits(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return 0x7fffffffu;
  const u32 mantissa = (bits << 8) | 0x80000000u;
  const u32 exponent = ((bits >> 23) & 0xffu) - 126u;
  const u32 word = exponent >> 5, shift = exponent & 31u;
  u32 high = word > 0u ? two_over_pi[word - 1u] : 0u, middle = two_over_pi[word],
      low = two_over_pi[word + 1u];
  const u32 next = two_over_pi[word + 2u];
  if (shift != 0u) {
    high = (high << shift) | (middle >> (32u - shift));
    middle = (middle << shift) | (low >> (32u - shift));
    low = (low << shift) | (next >> (32u - shift));
  }
  // The product modulo 4, with 62 bits behind the point.
  u64 turns = u64(mantissa) * low;
  turns = u64(mantissa) * middle + (turns >> 32);
  turns += u64(mantissa * high) << 32;
  u32 quadrant = u32(turns >> 62);
  i64 fraction = i64(turns & 0x3fffffffffffffffull);
  if ((turns & 0x2000000000000000ull) != 0ull) {  // nearest quarter turn
    fraction -= 0x4000000000000000ll;
    quadrant += 1u;
  }
  const float rest = float(double(fraction) * 0x1.921fb54442d18p-62);  // π/2 · 2^-62
  const bool negative = (bits >> 31) != 0u;
  return u64(negative ? 0u - quadrant : quadrant) << 32 | f32_to_bits(negative ? -rest : rest);
}

// Cody and Waite's three-step reduction: π/2 as a sum of three floats; the products with the quadrant are
// exact enough up to kHuge, as in CUDA's sinf.
TW_DEVICE Reduced reduce_quarter(float x) {
  constexpr float kHuge = 105615.f;
  constexpr float kShift = 12582912.f;  // 1.5 · 2^23: adding it rounds to an integer in the low bits
  const float shifted = fmaf(x, 0x1.45f306p-1f, kShift);  // 2/π
  const float count = shifted - kShift;
  float rest = fmaf(count, -0x1.921fb0p+0f, x);
  rest = fmaf(count, -0x1.5110b4p-22f, rest);
  rest = fmaf(count, -0x1.846988p-48f, rest);
  Reduced out = {rest, i32(f32_to_bits(shifted))};
  if (__builtin_expect(!(fabsf(x) <= kHuge), 0)) {  // NaN and infinity too
    const u64 packed = reduce_huge(x);
    out = {bits_to_f32(u32(packed)), i32(packed >> 32)};
  }
  return out;
}

// Minimax polynomials on [-π/4, π/4]. sin(-0) comes out as +0.
TW_DEVICE float sin_poly(float r) {
  const float r2 = r * r;
  float p = fmaf(2.86567956e-6f, r2, -1.98559923e-4f);
  p = fmaf(p, r2, 8.33338592e-3f);
  p = fmaf(p, r2, -1.66666672e-1f);
  return fmaf(p * r2, r, r);
}
TW_DEVICE float cos_poly(float r) {
  const float r2 = r * r;
  float p = fmaf(2.44677067e-5f, r2, -1.38877297e-3f);
  p = fmaf(p, r2, 4.16666567e-2f);
  p = fmaf(p, r2, -0.5f);
  return fmaf(p, r2, 1.f);
}
// Negated where bit 1 of the quadrant is set.
TW_DEVICE float in_half_turn(u32 quadrant_at_bit_30, float y) {
  return bits_to_f32(f32_to_bits(y) ^ (quadrant_at_bit_30 & 0x80000000u));
}
// Sine and cosine from those of the rest. Both test the same bit, which the compiler does once for the two.
TW_DEVICE float sin_in_quadrant(i32 quadrant, float sine, float cosine) {
  return in_half_turn(u32(quadrant) << 30, (quadrant & 1) != 0 ? cosine : sine);
}
TW_DEVICE float cos_in_quadrant(i32 quadrant, float sine, float cosine) {
  return in_half_turn((u32(quadrant) << 30) + 0x40000000u, (quadrant & 1) != 0 ? sine : cosine);
}

// A kernel that wants several functions of one argument reduces it once and hands the result to each.
TW_DEVICE float sin(Reduced a) { return sin_in_quadrant(a.quadrant, sin_poly(a.rest), cos_poly(a.rest)); }
TW_DEVICE float cos(Reduced a) { return cos_in_quadrant(a.quadrant, sin_poly(a.rest), cos_poly(a.rest)); }
TW_DEVICE float sin(float x) { return sin(reduce_quarter(x)); }
TW_DEVICE float cos(float x) { return cos(reduce_quarter(x)); }
// 3 ulp: two polynomials and one division.
TW_DEVICE float tan(Reduced a) {
  const float s = sin_poly(a.rest), c = cos_poly(a.rest);
  const bool odd = (a.quadrant & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}
TW_DEVICE float tan(float x) { return tan(reduce_quarter(x)); }

}  // namespace tw
