#include "harness/run/output_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::lab {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OutputSpec spec_of(DType dtype, std::int64_t n, ToleranceRule rule = {}) {
  rule.storage = dtype;
  return {"y", dtype, Shape{n}, rule};
}

OutputCheck one(DType dtype, double got, double want, std::vector<double> magnitude = {}) {
  return check_output(std::vector<double>{got}, {{want}, std::move(magnitude)}, spec_of(dtype, 1));
}

TEST(CheckOutput, OneRoundingOfTheStoredTypeIsWithinTheBound) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    for (double want : {1.0 / 3, 1e-3, 200.0, -7.7, 3e-8}) {
      const std::vector<double> got = {round_to(dtype, want), 1};
      EXPECT_TRUE(check_output(got, {{want, 1}}, spec_of(dtype, 2)).ok()) << name(dtype) << " " << want;
    }
  }
}

TEST(CheckOutput, OneWrongElementAmongAMillionIsFound) {
  const std::int64_t n = 1 << 20;
  Reference want;
  for (std::int64_t i = 0; i < n; ++i) want.values.push_back(1.0 + static_cast<double>(i % 7));
  std::vector<double> got = want.values;
  got[777777] *= 1 + 1e-6;
  OutputSpec spec = spec_of(DType::f32, n);
  spec.shape = Shape{1024, 1024};
  const OutputCheck check = check_output(got, want, spec);
  EXPECT_EQ(check.wrong, 1);
  EXPECT_EQ(check.worst, 777777);
  EXPECT_NEAR(check.max_rel_err, 1e-6, 1e-9);
  EXPECT_NE(describe(check, spec).find("y[759,561]: got"), std::string::npos) << describe(check, spec);
  EXPECT_NE(describe(check, spec).find("1 of 1048576 elements are wrong"), std::string::npos);
}

TEST(CheckOutput, WhereTheReferenceKnowsSomeRowsTheOthersMustBeWrittenAndFinite) {
  const Reference want{{1, 2, 0, 0, 0, 0, 5, 6}, {}, {.length = 2, .rows = {true, false, false, true}}};
  const auto check = [&](std::vector<double> got, std::uint8_t poison) {
    return check_output(got, want, spec_of(DType::f32, 8), poison);
  };
  EXPECT_TRUE(check({1, 2, 7, 8, 9, 0, 5, 6}, 0xFF).ok());
  EXPECT_EQ(check({1, 2, 7, 8, 9, 0, 5, 6}, 0xFF).compared, 4);
  EXPECT_EQ(check({1, 2, 7, 8, 9, 0, 5, 7}, 0xFF).wrong, 1);
  EXPECT_EQ(check({1, 2, 7, kNan, 9, 0, 5, 6}, 0xFF).unwritten, 1);
  EXPECT_EQ(check({1, 2, 7, kInf, 9, 0, 5, 6}, 0xFF).wrong, 1);
  EXPECT_EQ(check({1, 2, poison_value(DType::f32, 0x5A), 8, 9, 0, 5, 6}, 0x5A).unwritten, 1);
}

TEST(CheckOutput, NanAndInfinityMatchOnlyThemselves) {
  EXPECT_TRUE(one(DType::f32, kNan, kNan).ok());
  EXPECT_TRUE(one(DType::f32, -kInf, -kInf).ok());
  EXPECT_FALSE(one(DType::f32, kNan, 1).ok());
  EXPECT_FALSE(one(DType::f32, 1, kNan).ok());
  EXPECT_FALSE(one(DType::f32, kInf, -kInf).ok());
  EXPECT_FALSE(one(DType::f32, kInf, 1).ok());
  EXPECT_FALSE(one(DType::f32, 1e30, kInf).ok());
  EXPECT_EQ(one(DType::f32, kNan, 1).max_rel_err, kInf);
}

TEST(CheckOutput, OverflowIsWhatAStoreMakesOfIt) {
  EXPECT_TRUE(one(DType::f16, kInf, 70000).ok());
  EXPECT_FALSE(one(DType::f16, 1000, 70000).ok());
  EXPECT_TRUE(one(DType::f16, 65504, 65530).ok());  // within a rounding of the edge, both are right
  EXPECT_TRUE(one(DType::f8e4m3, 448, 1e6).ok());   // saturates
  EXPECT_TRUE(one(DType::f8e4m3, 448, kInf).ok());
  EXPECT_FALSE(one(DType::f8e4m3, 256, 1e6).ok());
}

TEST(CheckOutput, SubnormalsAreHeldToTheirSpacing) {
  const double step = min_subnormal(DType::f32);
  EXPECT_TRUE(one(DType::f32, 3 * step, 3.4 * step).ok());
  EXPECT_FALSE(one(DType::f32, 3 * step, 6 * step).ok());
}

TEST(CheckOutput, TheMagnitudeScalesTheError) {
  const double error = 3e-7;  // of a difference of two numbers near 100
  EXPECT_FALSE(one(DType::f32, 1 + error, 1).ok());
  EXPECT_TRUE(one(DType::f32, 1 + error, 1, {100}).ok());
}

TEST(CheckOutput, IntegersMustBeEqual) {
  EXPECT_TRUE(one(DType::i32, -5, -5).ok());
  EXPECT_FALSE(one(DType::i32, -5, -4).ok());
  EXPECT_FALSE(one(DType::i64, 1, 0).ok());
}

TEST(CheckOutput, UnwrittenElementsAreToldFromWrongOnes) {
  const std::vector<double> got = {1, poison_value(DType::f32, 0x5A), 3};
  const OutputCheck check = check_output(got, {{1, 2, 4}}, spec_of(DType::f32, 3), 0x5A);
  EXPECT_EQ(check.wrong, 2);
  EXPECT_EQ(check.unwritten, 1);
  const OutputCheck nan = check_output(std::vector<double>{kNan}, {{1}}, spec_of(DType::f32, 1), 0xFF);
  EXPECT_EQ(nan.unwritten, 1);
  EXPECT_EQ(nan.unexpected_nan, 1);
}

TEST(CheckOutput, PoisonIsNanOrFarFromZeroInEveryFloatType) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    EXPECT_TRUE(std::isnan(poison_value(dtype, 0xFF))) << name(dtype);
    EXPECT_GT(poison_value(dtype, 0x5A), 1.0) << name(dtype);
    EXPECT_TRUE(std::isfinite(poison_value(dtype, 0x5A))) << name(dtype);
  }
}

TEST(CheckOutput, AnOutputOfTheWrongSizeIsWrong) {
  EXPECT_FALSE(check_output(std::vector<double>{1}, {{1, 2}}, spec_of(DType::f32, 2)).ok());
}

TEST(CheckOutput, AMagnitudeThatLetsZerosPassIsVacuous) {
  const OutputCheck check = one(DType::f32, 1, 1, {1e12});
  EXPECT_EQ(check.wrong, 0);
  EXPECT_FALSE(check.ok());
  EXPECT_NE(describe(check, spec_of(DType::f32, 1)).find("zeros would pass"), std::string::npos);
}

TEST(CheckOutput, ABoundAboveOneHalfIsVacuous) {
  const OutputSpec spec =
      spec_of(DType::f8e5m2, 1, {.storage_roundings = 3});  // 0.6: zeros would still be caught
  EXPECT_FALSE(check_output(std::vector<double>{1}, {{1}}, spec).ok());
}

TEST(CheckOutput, AReferenceThatIsStoredAsZerosIsNotVacuous) {
  EXPECT_TRUE(one(DType::f32, 0, 0).ok());
  EXPECT_TRUE(one(DType::f16, 0, 1e-9).ok());
}

TEST(CheckOutput, EmptyOutputsAreRight) {
  EXPECT_TRUE(check_output(std::vector<double>{}, {}, spec_of(DType::f32, 0)).ok());
}

}  // namespace
}  // namespace tilewright::lab
