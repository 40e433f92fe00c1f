// The parts of the device headers that are plain C++ (argument reduction, polynomials, software fp8),
// compiled for the host and compared with the float64 library and with base/dtype.h. What is PTX is tested on
// the GPU (gpu_tests/).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "tilewright/base/dtype.h"

// NOLINTBEGIN(bugprone-reserved-identifier): they are CUDA's.
// CUDA's words on the host. PTX statements vanish: functions made of them must not be called here.
#define __device__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define asm(...)
static inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
static inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
// Rounding toward zero: take back a step that went too far.
template <class Narrow, class Wide>
Narrow toward_zero(Wide x) {
  const auto narrow = static_cast<Narrow>(x);
  return std::fabs(static_cast<long double>(narrow)) > std::fabs(static_cast<long double>(x))
             ? std::nextafter(narrow, Narrow(0))
             : narrow;
}
static inline float __double2float_rz(double x) { return toward_zero<float>(x); }
static inline float __ll2float_rz(long long x) { return toward_zero<float>(x); }
static inline long long __float2ll_rz(float x) { return static_cast<long long>(x); }
static inline long long __double2ll_rz(double x) { return static_cast<long long>(x); }
static inline int __float2int_rz(float x) { return static_cast<int>(x); }
static inline int __double2int_rz(double x) { return static_cast<int>(x); }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
// NOLINTEND(bugprone-reserved-identifier)
static inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
static inline double rsqrt(double x) { return 1. / std::sqrt(x); }
using std::memcpy;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/math_fast.cuh"
#pragma GCC diagnostic pop

namespace tilewright::cuda {
namespace {

// Distance in units of f32's last place at the exact value.
double ulps(float got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// Over all finite magnitudes, evenly in their bits; the step is prime so that mantissas vary.
template <class Check>
void for_many_floats(const Check& check) {
  for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 6151) {
    check(__uint_as_float(bits));
    check(__uint_as_float(bits | 0x80000000u));
  }
}

TEST(DeviceMath, SinCosAndTanKeepTheirBoundsForEveryMagnitude) {
  double worst_sin = 0, worst_cos = 0, worst_tan = 0;
  for_many_floats([&](float x) {
    worst_sin = std::max(worst_sin, ulps(tw::sin(x), std::sin(static_cast<double>(x))));
    worst_cos = std::max(worst_cos, ulps(tw::cos(x), std::cos(static_cast<double>(x))));
    worst_tan = std::max(worst_tan, ulps(tw::tan(x), std::tan(static_cast<double>(x))));
  });
  EXPECT_LT(worst_sin, 2.0);
  EXPECT_LT(worst_cos, 2.0);
  EXPECT_LT(worst_tan, 4.0);
}

TEST(DeviceMath, SinOfInfinityAndNanIsNan) {
  for (float x : {INFINITY, -INFINITY, NAN}) {
    EXPECT_TRUE(std::isnan(tw::sin(x)));
    EXPECT_TRUE(std::isnan(tw::cos(x)));
    EXPECT_TRUE(std::isnan(tw::tan(x)));
  }
}

TEST(DeviceMath, FastSinAndCosKeepAQuarterUnitOfBf16) {
  double worst = 0;
  for_many_floats([&](float x) {
    const double s = std::sin(static_cast<double>(x)), c = std::cos(static_cast<double>(x));
    if (std::fabs(s) > 1e-37) worst = std::max(worst, std::fabs(tw::fast::sin(x) / s - 1));
    if (std::fabs(c) > 1e-37) worst = std::max(worst, std::fabs(tw::fast::cos(x) / c - 1));
  });
  EXPECT_LT(worst, 0x1p-10);
}

// With a reciprocal as far off as the hardware's may be, the quotient is rounded once, as by a division: what
// else a sigmoid is off by, the exponential is (3 ulp, which gpu_tests measures for every float).
TEST(DeviceMath, TheSigmoidsQuotientIsRoundedOnce) {
  double worst = 0;
  for (const float off : {1 - 0x1p-23F, 1 + 0x1p-23F})
    for (float x = -86.f; x < 86.f; x += 0.0013f) {
      const float e = std::exp(-std::fabs(x)), divisor = 1.f + e;
      const double quotient = (x < 0 ? static_cast<double>(e) : 1.0) / static_cast<double>(divisor);
      worst = std::max(worst, ulps(tw::sigmoid_by_newton(x, e, off / divisor), quotient));
    }
  EXPECT_LT(worst, 0.51);
  EXPECT_TRUE(std::isnan(tw::sigmoid_by_newton(NAN, NAN, NAN)));
}

// The hardware's guesses are off by 2^-23, either way.
TEST(DeviceArith, QuotientsAreRoundedRightWhateverTheGuess) {
  std::mt19937 random(7);
  double worst = 0, worst_subnormal = 0;
  for (int i = 0; i < 3'000'000; ++i) {
    const float a = __uint_as_float(static_cast<std::uint32_t>(random()));
    const float b = __uint_as_float(static_cast<std::uint32_t>(random()));
    const float scale = tw::detail::scale_of_divisor(b), scaled = b * scale;
    const float off = i % 2 == 0 ? 1 - 0x1p-23F : 1 + 0x1p-23F;
    const float got = tw::detail::quotient_of_guess(a * scale, scaled, off / scaled), right = a / b;
    if (std::isnan(right)) {
      ASSERT_TRUE(std::isnan(got)) << a << " / " << b;
    } else if (std::isinf(right) || right == 0) {
      ASSERT_TRUE(got == right && std::signbit(got) == std::signbit(right)) << a << " / " << b << ": " << got;
    } else {
      double& most = std::fabs(right) < 0x1p-126F ? worst_subnormal : worst;
      most = std::max(most, ulps(got, static_cast<double>(a) / static_cast<double>(b)));
    }
  }
  EXPECT_LT(worst, 0.5001);
  EXPECT_LE(worst_subnormal, 0.75);
}

TEST(DeviceArith, QuotientsThatAreFloatsAreExact) {
  for (int a = -300; a <= 300; ++a)
    for (int b = 1; b <= 300; ++b)
      for (const float off : {1 - 0x1p-23F, 1 + 0x1p-23F}) {
        const auto divisor = static_cast<float>(b), product = static_cast<float>(a * b);
        ASSERT_EQ(tw::detail::quotient_of_guess(product, divisor, off / divisor), static_cast<float>(a));
      }
}

TEST(DeviceArith, RootsAreRoundedRightWhateverTheGuess) {
  double worst = 0;
  for (const float off : {1 - 0x1p-22F, 1 + 0x1p-22F})
    for_many_floats([&](float x) {
      if (x < 0x1p-64F) return;  // sqrt() scales those
      const auto exact = std::sqrt(static_cast<double>(x));
      worst = std::max(worst, ulps(tw::detail::root_of_guess(x, static_cast<float>(off / exact)), exact));
    });
  EXPECT_LT(worst, 0.5001);
  EXPECT_EQ(tw::detail::root_of_guess(0.f, INFINITY), 0.f);
  EXPECT_TRUE(std::signbit(tw::detail::root_of_guess(-0.f, -INFINITY)));
  EXPECT_EQ(tw::detail::root_of_guess(INFINITY, 0.f), INFINITY);
  EXPECT_TRUE(std::isnan(tw::detail::root_of_guess(-1.f, NAN)));
}

TEST(DeviceArith, IntegersNeverTrap) {
  const int lowest = -2147483647 - 1;
  EXPECT_EQ(tw::div(7, 0), 0);
  EXPECT_EQ(tw::rem(7, 0), 7);
  EXPECT_EQ(tw::div(lowest, -1), lowest);
  EXPECT_EQ(tw::rem(lowest, -1), 0);
  EXPECT_EQ(tw::div(-7, 2), -3);
  EXPECT_EQ(tw::rem(-7, 2), -1);
  EXPECT_EQ(tw::add(2147483647, 1), lowest);
  EXPECT_EQ(tw::shl(1, 33), 2);
  EXPECT_EQ(tw::shr(-8, 1), -4);
  EXPECT_EQ(tw::abs(lowest), lowest);
  EXPECT_EQ(tw::sign(-5), -1);
  EXPECT_EQ(tw::div<tw::u8>(200, 7), 28);
  EXPECT_EQ((tw::mul<tw::i8>(100, 3)), static_cast<signed char>(44));
}

// Every f8 pattern's neighbourhood: the value itself, the ties to its neighbours, and a little to either
// side.
TEST(DeviceConvert, SoftwareFp8RoundsAsBaseDoes) {
  const auto expect = [](DType dtype, float x, unsigned char got) {
    unsigned char want = 0;
    store_f64(&want, dtype, x);
    if (std::isnan(x)) {
      EXPECT_EQ(got & 0x7f, 0x7f);
    } else {
      EXPECT_EQ(int{got}, int{want}) << name(dtype) << " of " << x;
    }
  };
  for_many_floats([&](float x) {
    expect(DType::f8e4m3, x, tw::soft_e4m3(x));
    expect(DType::f8e5m2, x, tw::soft_e5m2(x));
  });
  // Three mantissa bits and a half bit are the top 12 bits: with the bits below at 0, 1 and all ones, each
  // rounding case.
  for (std::uint32_t top = 0; top < 0x10000; ++top) {
    for (std::uint32_t low : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0xffffu}) {
      const float x = __uint_as_float(top << 16 | low);
      expect(DType::f8e4m3, x, tw::soft_e4m3(x));
      expect(DType::f8e5m2, x, tw::soft_e5m2(x));
    }
  }
}

TEST(DeviceConvert, Fp8ReadsBackExactly) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<unsigned char>(bits);
    const double want = load_f64(&byte, DType::f8e4m3);
    const float got = tw::to_f32(tw::f8e4m3{byte});
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      EXPECT_EQ(static_cast<double>(got), want);
      EXPECT_EQ(std::signbit(got), std::signbit(want));
    }
  }
}

// Rounding to odd on the way: a float64 a hair above a tie of bf16 must go up, which rounding to f32 first
// would lose.
TEST(DeviceConvert, RoundsToOddBeforeTheSecondRounding) {
  const double above = 1.0 + 0x1p-8 + 0x1p-40, below = 1.0 + 0x1p-8 - 0x1p-40;
  EXPECT_GT(tw::to_f32_odd(above), 1.0f + 0x1p-8f);
  EXPECT_LT(tw::to_f32_odd(below), 1.0f + 0x1p-8f);
  EXPECT_EQ(tw::to_f32_odd(1.5), 1.5f);
  EXPECT_EQ(tw::to_f32_odd(tw::i64{(1ll << 40) + 1}), __uint_as_float(__float_as_uint(0x1p40f) | 1u));
  EXPECT_TRUE(std::isnan(tw::to_f32_odd(static_cast<double>(NAN))));
}

}  // namespace
}  // namespace tilewright::cuda
