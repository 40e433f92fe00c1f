// The exact scalar primitives, as tile/prim.h defines them: integers never trap, min and max hand a NaN on,
// rounding goes to even. One function per primitive and type class; plain operators are used where C++
// already says the same.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

// ---- integers: wrap around; x / 0 = 0, x rem 0 = x; shifts use the count modulo the width
// ---------------------------
template <class T>
struct unsigned_of {
  using type = T;
};
template <>
struct unsigned_of<i8> {
  using type = u8;
};
template <>
struct unsigned_of<i32> {
  using type = u32;
};
template <>
struct unsigned_of<i64> {
  using type = u64;
};

template <class T>
TW_DEVICE T add(T a, T b) {
  using U = typename unsigned_of<T>::type;
  return T(U(a) + U(b));
}
template <class T>
TW_DEVICE T sub(T a, T b) {
  using U = typename unsigned_of<T>::type;
  return T(U(a) - U(b));
}
template <class T>
TW_DEVICE T mul(T a, T b) {
  using U = typename unsigned_of<T>::type;
  return T(U(a) * U(b));
}
template <class T>
TW_DEVICE T neg(T a) {
  using U = typename unsigned_of<T>::type;
  return T(U(0) - U(a));
}
// b = -1 is apart: the smallest value divided by it has no machine result.
template <class T>
TW_DEVICE T div(T a, T b) {
  if (b == T(0)) return T(0);
  if (T(-1) < T(0) && b == T(-1)) return neg(a);
  return T(a / b);
}
template <class T>
TW_DEVICE T rem(T a, T b) {
  if (b == T(0)) return a;
  if (T(-1) < T(0) && b == T(-1)) return T(0);
  return T(a % b);
}
template <class T>
TW_DEVICE T shl(T a, T count) {
  using U = typename unsigned_of<T>::type;
  return T(U(a) << (U(count) & U(sizeof(T) * 8 - 1)));
}
template <class T>
TW_DEVICE T shr(T a, T count) {
  using U = typename unsigned_of<T>::type;
  return T(a >> (U(count) & U(sizeof(T) * 8 - 1)));
}
template <class T>
TW_DEVICE T abs(T a) {
  return a < T(0) ? neg(a) : a;
}
template <class T>
TW_DEVICE T sign(T a) {
  return T(int(a > T(0)) - int(a < T(0)));
}

// ---- floats
// -----------------------------------------------------------------------------------------------------------
TW_DEVICE float add(float a, float b) { return a + b; }
TW_DEVICE double add(double a, double b) { return a + b; }
TW_DEVICE float sub(float a, float b) { return a - b; }
TW_DEVICE double sub(double a, double b) { return a - b; }
TW_DEVICE float mul(float a, float b) { return a * b; }
TW_DEVICE double mul(double a, double b) { return a * b; }
TW_DEVICE float neg(float a) { return -a; }
TW_DEVICE double neg(double a) { return -a; }
TW_DEVICE float rem(float a, float b) { return fmodf(a, b); }
TW_DEVICE double rem(double a, double b) { return ::fmod(a, b); }
TW_DEVICE float abs(float a) { return fabsf(a); }
TW_DEVICE double abs(double a) { return fabs(a); }
TW_DEVICE float sign(float a) { return a != a ? a : float(int(a > 0.f) - int(a < 0.f)); }
TW_DEVICE double sign(double a) { return a != a ? a : double(int(a > 0.) - int(a < 0.)); }
TW_DEVICE float floor(float a) { return floorf(a); }
TW_DEVICE double floor(double a) { return ::floor(a); }
TW_DEVICE float ceil(float a) { return ceilf(a); }
TW_DEVICE double ceil(double a) { return ::ceil(a); }
TW_DEVICE float round(float a) { return rintf(a); }
TW_DEVICE double round(double a) { return ::rint(a); }
TW_DEVICE float trunc(float a) { return truncf(a); }
TW_DEVICE double trunc(double a) { return ::trunc(a); }
// Never contracted with what is added to it.
TW_DEVICE float rounded_mul(float a, float b) { return __fmul_rn(a, b); }
TW_DEVICE double rounded_mul(double a, double b) { return __dmul_rn(a, b); }
TW_DEVICE float fma(float a, float b, float c) { return fmaf(a, b, c); }
TW_DEVICE double fma(double a, double b, double c) { return ::fma(a, b, c); }
template <class T>
TW_DEVICE bool isnan(T a) {
  return a != a;
}

// ---- quotients and square roots. CUDA's own test their operands and call a function where these are
// subnormal or large: a branch for each element, past which ptxas moves nothing, and seconds of its time
// where 256 of them stand in one loop. Ours bring the operands into the range of the hardware's guess,
// correct it once by what it lacks, and have no branch. A result that f32 has is found exactly; others are
// rounded correctly but for one in millions (0.5 + 2^-20 ulp), and subnormal ones twice (0.75 ulp).
namespace detail {
TW_DEVICE float rcp(float x) {  // 2^-23; 0 for x from 2^126 on, infinite for subnormal x
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TW_DEVICE float rsqrt(float x) {  // 2^-22; infinite for subnormal x
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Brings a divisor into the range that rcp takes. The quotient's other operand is multiplied by it, too:
// where that overflows or loses bits, so does the quotient.
TW_DEVICE float scale_of_divisor(float x) {
  const float size = fabsf(x);
  return size > 0x1p64f ? 0x1p-24f : size < 0x1p-64f ? 0x1p24f : 1.f;
}
// a / b from a guess of 1 / b. The correction of 0, infinity and NaN is NaN or has lost the sign: these stand
// as they were guessed. Of a small `a` the rest a - q b would be subnormal, of a large one q could overflow.
TW_DEVICE float quotient_of_guess(float a, float b, float guess) {
  const float size = fabsf(a);
  const bool small = size < 0x1p-64f, large = size > 0x1p64f;
  const float scaled = a * (small ? 0x1p60f : large ? 0x1p-60f : 1.f);
  const float q = scaled * guess;
  const float corrected = fmaf(fmaf(-q, b, scaled), guess, q);
  return (fabsf(corrected) > 0.f ? corrected : q) * (small ? 0x1p-60f : large ? 0x1p60f : 1.f);
}
// The root of x from a guess of 1 / root of x; 0 and infinity are their own.
TW_DEVICE float root_of_guess(float x, float guess) {
  const float y = x * guess;
  const float corrected = fmaf(fmaf(-y, y, x), 0.5f * guess, y);
  return x == 0.f || x == __uint_as_float(0x7f800000u) ? x : corrected;
}
}  // namespace detail
TW_DEVICE float div(float a, float b) {
  const float s = detail::scale_of_divisor(b), scaled = b * s;
  return detail::quotient_of_guess(a * s, scaled, detail::rcp(scaled));
}
TW_DEVICE double div(double a, double b) { return a / b; }
TW_DEVICE float reciprocal(float x) {
  const float s = detail::scale_of_divisor(x), scaled = x * s;
  const float guess = detail::rcp(scaled), corrected = fmaf(fmaf(-guess, scaled, 1.f), guess, guess);
  return (fabsf(corrected) > 0.f ? corrected : guess) * s;
}
TW_DEVICE double reciprocal(double x) { return 1. / x; }
TW_DEVICE float sqrt(float x) {
  const bool small = x < 0x1p-64f;
  const float scaled = small ? x * 0x1p64f : x;
  const float root = detail::root_of_guess(scaled, detail::rsqrt(scaled));
  return small ? root * 0x1p-32f : root;
}
TW_DEVICE double sqrt(double a) { return ::sqrt(a); }

// ---- min and max: NaN if either operand is
// --------------------------------------------------------------------------
TW_DEVICE float max(float a, float b) {
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}
TW_DEVICE float min(float a, float b) {
  float out;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}
TW_DEVICE double max(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
TW_DEVICE double min(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
template <class T>
TW_DEVICE T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
TW_DEVICE T min(T a, T b) {
  return b < a ? b : a;
}

}  // namespace tw
