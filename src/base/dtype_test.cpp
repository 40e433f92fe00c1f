// Element types: every code of the narrow floats, rounding against independent searches, and integer rules.
#include <tilewright/base/dtype.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kNarrow[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};

std::uint32_t code_count(DType dtype) { return 1u << (8 * size_bytes(dtype)); }

double from_code(DType dtype, std::uint32_t code) { return load_f64(&code, dtype); }

std::uint32_t to_code(DType dtype, double value) {
  std::uint32_t code = 0;
  store_f64(&code, dtype, value);
  return code;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// The value of a code from the definition of the format, with ldexp: shares nothing with the library.
double value_by_definition(std::uint32_t code, int exponent_bits, int mantissa_bits, bool ieee) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(code >> mantissa_bits) & top;
  const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const double sign = (code >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  if (ieee && exponent == top) return mantissa == 0 ? sign * kInfinity : kNaN;
  if (!ieee && exponent == top && mantissa == (1 << mantissa_bits) - 1) return kNaN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// Nearest finite value by looking at all of them; ties go to the even code; beyond the range by the header's
// rule.
class NearestSearch {
 public:
  explicit NearestSearch(DType dtype) : dtype_(dtype) {
    for (std::uint32_t code = 0; code < code_count(dtype) / 2; ++code) {
      const double value = from_code(dtype, code);
      if (std::isfinite(value)) values_.push_back(value);
    }
  }

  double operator()(double value) const {
    const double magnitude = std::abs(value);
    const double step = values_.back() - values_[values_.size() - 2];
    if (magnitude >= values_.back() + step / 2) {
      const bool saturates = size_bytes(dtype_) == 1;
      return std::copysign(saturates ? values_.back() : kInfinity, value);
    }
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude) - values_.begin();
    if (above == static_cast<std::ptrdiff_t>(values_.size())) return std::copysign(values_.back(), value);
    if (above == 0) return value;
    const auto below = above - 1;
    const double up = values_[static_cast<std::size_t>(above)] - magnitude;
    const double down = magnitude - values_[static_cast<std::size_t>(below)];
    const auto nearest = up < down ? above : down < up ? below : (above % 2 == 0 ? above : below);
    return std::copysign(values_[static_cast<std::size_t>(nearest)], value);
  }

  const std::vector<double>& values() const { return values_; }

 private:
  DType dtype_;
  std::vector<double> values_;  // by code
};

TEST(DTypeTable, NamesParseBack) {
  for (DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  EXPECT_EQ(name(DType::boolean), "bool");
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
}

TEST(DTypeTable, SizesAndClasses) {
  const std::size_t sizes[] = {8, 4, 2, 2, 1, 1, 8, 4, 1, 1, 1};
  for (std::size_t i = 0; i < std::size(kAllDTypes); ++i) EXPECT_EQ(size_bytes(kAllDTypes[i]), sizes[i]);
  for (DType dtype : kAllDTypes)
    EXPECT_EQ(is_float(dtype) + is_integer(dtype) + is_bool(dtype), 1) << name(dtype);
  for (DType dtype : kNarrow) EXPECT_EQ(compute_dtype(dtype), DType::f32);
  EXPECT_EQ(compute_dtype(DType::f64), DType::f64);
  EXPECT_EQ(compute_dtype(DType::i8), DType::i8);
}

TEST(DTypeTable, LimitsAreThePublishedOnes) {
  EXPECT_EQ(max_finite(DType::f16), 65504);
  EXPECT_EQ(max_finite(DType::f8e4m3), 448);
  EXPECT_EQ(max_finite(DType::f8e5m2), 57344);
  EXPECT_EQ(max_finite(DType::bf16), 0x1.FEp127);
  EXPECT_EQ(min_normal(DType::f16), 0x1p-14);
  EXPECT_EQ(min_subnormal(DType::f16), 0x1p-24);
  EXPECT_EQ(min_subnormal(DType::f8e4m3), 0x1p-9);
  EXPECT_EQ(min_subnormal(DType::f8e5m2), 0x1p-16);
  EXPECT_EQ(min_subnormal(DType::f32), 0x1p-149);
  EXPECT_EQ(max_finite(DType::i8), 127);
  EXPECT_EQ(max_finite(DType::u8), 255);
}

TEST(DTypeTable, UnitRoundoffIsHalfTheStepAboveOne) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    const double u = unit_roundoff(dtype);
    EXPECT_EQ(round_to(dtype, 1 + 2 * u), 1 + 2 * u) << name(dtype);
    EXPECT_EQ(round_to(dtype, 1 + u), 1) << name(dtype);  // the tie goes to even
    EXPECT_EQ(round_to(dtype, 1 + u * 1.0001), 1 + 2 * u) << name(dtype);
  }
  EXPECT_EQ(unit_roundoff(DType::i32), 0);
}

TEST(NarrowFloat, EveryCodeHasTheValueOfItsDefinition) {
  struct Format {
    DType dtype;
    int exponent_bits, mantissa_bits;
    bool ieee;
  };
  for (const Format& f : {Format{DType::f16, 5, 10, true}, Format{DType::bf16, 8, 7, true},
                          Format{DType::f8e4m3, 4, 3, false}, Format{DType::f8e5m2, 5, 2, true}}) {
    for (std::uint32_t code = 0; code < code_count(f.dtype); ++code) {
      const double expected = value_by_definition(code, f.exponent_bits, f.mantissa_bits, f.ieee);
      ASSERT_TRUE(same(from_code(f.dtype, code), expected)) << name(f.dtype) << " code " << code;
    }
  }
}

TEST(NarrowFloat, EveryFiniteCodeComesBackAsItself) {
  for (DType dtype : kNarrow) {
    for (std::uint32_t code = 0; code < code_count(dtype); ++code) {
      const double value = from_code(dtype, code);
      if (std::isfinite(value)) {
        ASSERT_EQ(to_code(dtype, value), code) << name(dtype);
      } else if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(round_to(dtype, value))) << name(dtype) << " code " << code;
      }
    }
  }
}

TEST(NarrowFloat, F16AgreesWithTheCompiler) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    // Any float64 whose exponent lies around the range of f16.
    const std::uint64_t exponent = 1023 - 30 + random() % 50;
    const double value = std::bit_cast<double>((random() & ~(0x7FFull << 52)) | exponent << 52);
    const auto expected = static_cast<_Float16>(value);
    ASSERT_EQ(to_code(DType::f16, value), std::bit_cast<std::uint16_t>(expected)) << value;
  }
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto expected = std::bit_cast<_Float16>(static_cast<std::uint16_t>(code));
    ASSERT_TRUE(same(from_code(DType::f16, code), static_cast<double>(expected))) << code;
  }
}

TEST(NarrowFloat, RoundingIsTheNearestValueForRandomInputs) {
  for (DType dtype : kNarrow) {
    const NearestSearch nearest(dtype);
    std::mt19937_64 random(2);
    const double low = std::log2(min_subnormal(dtype)) - 3;
    const double high = std::log2(max_finite(dtype)) + 2;
    std::uniform_real_distribution<double> exponent(low, high);
    for (int i = 0; i < 200'000; ++i) {
      const double value = std::exp2(exponent(random)) * (random() % 2 == 0 ? 1 : -1);
      ASSERT_TRUE(same(round_to(dtype, value), nearest(value))) << name(dtype) << ' ' << value;
    }
  }
}

TEST(NarrowFloat, TiesGoToEvenAtEveryMidpoint) {
  for (DType dtype : kNarrow) {
    const std::vector<double> values = NearestSearch(dtype).values();
    for (std::size_t code = 0; code + 1 < values.size(); ++code) {
      const double middle = (values[code] + values[code + 1]) / 2;
      const double even = values[code % 2 == 0 ? code : code + 1];
      for (double sign : {1.0, -1.0}) {
        ASSERT_TRUE(same(round_to(dtype, sign * middle), sign * even)) << name(dtype) << ' ' << middle;
        ASSERT_EQ(round_to(dtype, sign * std::nextafter(middle, 0)), sign * values[code]) << name(dtype);
        ASSERT_EQ(round_to(dtype, sign * std::nextafter(middle, kInfinity)), sign * values[code + 1]);
      }
    }
  }
}

TEST(NarrowFloat, OverflowGoesToInfinityInSixteenBitsAndSaturatesInEight) {
  EXPECT_EQ(round_to(DType::f16, 65519.99), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), kInfinity);
  EXPECT_EQ(round_to(DType::bf16, -3.4e38), -kInfinity);
  EXPECT_EQ(round_to(DType::bf16, 1e300), kInfinity);
  for (double large : {449.0, 465.0, 1e300, kInfinity}) {
    EXPECT_EQ(round_to(DType::f8e4m3, large), 448);
    EXPECT_EQ(round_to(DType::f8e4m3, -large), -448);
  }
  for (double large : {61440.0, 70000.0, 1e300, kInfinity}) EXPECT_EQ(round_to(DType::f8e5m2, large), 57344);
  EXPECT_EQ(from_code(DType::f8e5m2, 0x7C), kInfinity);  // a code that store never makes still loads
}

TEST(NarrowFloat, ZeroKeepsItsSignAndTinyValuesVanish) {
  for (DType dtype : kNarrow) {
    EXPECT_TRUE(same(round_to(dtype, -0.0), -0.0));
    EXPECT_TRUE(same(round_to(dtype, -5e-324), -0.0));
    EXPECT_EQ(round_to(dtype, min_subnormal(dtype) / 2), 0);  // a tie, and zero is even
    EXPECT_EQ(round_to(dtype, min_subnormal(dtype) * 0.5001), min_subnormal(dtype));
    EXPECT_TRUE(std::isnan(round_to(dtype, kNaN)));
  }
}

TEST(Integers, WrapAround) {
  EXPECT_EQ(wrap_to(DType::i8, 128), -128);
  EXPECT_EQ(wrap_to(DType::i8, 300), 44);
  EXPECT_EQ(wrap_to(DType::u8, -1), 255);
  EXPECT_EQ(wrap_to(DType::i32, 1ll << 31), -(1ll << 31));
  EXPECT_EQ(wrap_to(DType::i64, std::numeric_limits<std::int64_t>::min()),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(wrap_to(DType::boolean, 256), 1);
  for (int v = -1000; v < 1000; ++v) EXPECT_EQ(wrap_to(DType::i8, v), static_cast<signed char>(v));
}

TEST(Integers, FromFloatTruncatesAndSaturates) {
  EXPECT_EQ(float_to_int(DType::i32, -1.9), -1);
  EXPECT_EQ(float_to_int(DType::i8, 1e9), 127);
  EXPECT_EQ(float_to_int(DType::i8, -128.9), -128);
  EXPECT_EQ(float_to_int(DType::u8, -0.5), 0);
  EXPECT_EQ(float_to_int(DType::u8, 255.9), 255);
  EXPECT_EQ(float_to_int(DType::i64, 0x1p63), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(float_to_int(DType::i64, -kInfinity), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(float_to_int(DType::i32, kNaN), 0);
  EXPECT_EQ(float_to_int(DType::boolean, 0.25), 1);
  EXPECT_EQ(float_to_int(DType::boolean, kNaN), 1);
  EXPECT_EQ(float_to_int(DType::boolean, -0.0), 0);
}

TEST(Integers, HoldWholeNumbersFromTheirLeastToTheirLargest) {
  const std::tuple<DType, double, double> limits[] = {{DType::i64, -0x1p63, 0x1p63 - 1024},
                                                      {DType::i32, -0x1p31, 0x1p31 - 1},
                                                      {DType::i8, -128, 127},
                                                      {DType::u8, 0, 255},
                                                      {DType::boolean, 0, 1}};
  for (const auto& [dtype, least, largest] : limits) {
    const double inside[] = {least, largest, -0.0, 1};
    for (double v : inside) EXPECT_TRUE(holds(dtype, v)) << name(dtype) << " " << v;
    const double outside[] = {std::nextafter(least, -kInfinity),
                              std::nextafter(largest, kInfinity),
                              0.5,
                              -kInfinity,
                              kInfinity,
                              kNaN};
    for (double v : outside) EXPECT_FALSE(holds(dtype, v)) << name(dtype) << " " << v;
  }
}

TEST(Integers, LargeInt64RoundsOnceOnItsWayToAFloat) {
  // Just above the middle between two bf16 values: through float64 the excess would vanish and the tie go
  // down.
  const std::int64_t above_middle = (1ll << 62) + (1ll << 54) + 1;
  std::uint64_t storage = 0;
  store_i64(&storage, DType::bf16, above_middle);
  EXPECT_EQ(load_f64(&storage, DType::bf16), 0x1.02p62);
  store_i64(&storage, DType::bf16, -above_middle);
  EXPECT_EQ(load_f64(&storage, DType::bf16), -0x1.02p62);
  store_i64(&storage, DType::bf16, above_middle - 1);
  EXPECT_EQ(load_f64(&storage, DType::bf16), 0x1p62);
  store_i64(&storage, DType::bf16, above_middle - 2);
  EXPECT_EQ(load_f64(&storage, DType::bf16), 0x1p62);
  store_i64(&storage, DType::bf16, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(load_f64(&storage, DType::bf16), 0x1p63);
}

}  // namespace
}  // namespace tilewright
