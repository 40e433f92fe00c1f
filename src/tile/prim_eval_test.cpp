#include "tile/prim_eval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::tile {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(PrimEval, MinAndMaxReturnNaNIfEitherIsNaN) {
  for (Prim prim : {Prim::min, Prim::max}) {
    EXPECT_TRUE(std::isnan(eval_f64(prim, kNaN, 1)));
    EXPECT_TRUE(std::isnan(eval_f64(prim, 1, kNaN)));
  }
  EXPECT_EQ(eval_f64(Prim::min, -kInf, 3), -kInf);
  EXPECT_EQ(eval_f64(Prim::max, 2, 3), 3);
}

TEST(PrimEval, RoundGoesToEvenAndRemKeepsTheDividendsSign) {
  EXPECT_EQ(eval_f64(Prim::round, 2.5), 2);
  EXPECT_EQ(eval_f64(Prim::round, -3.5), -4);
  EXPECT_EQ(eval_f64(Prim::rem, -7, 4), -3);
  EXPECT_EQ(eval_f64(Prim::rem, 7, -4), 3);
}

TEST(PrimEval, SpecialValuesOfFloats) {
  EXPECT_EQ(eval_f64(Prim::sign, -0.5), -1);
  EXPECT_TRUE(std::isnan(eval_f64(Prim::sign, kNaN)));
  EXPECT_EQ(eval_f64(Prim::sigmoid, -1000), 0);
  EXPECT_EQ(eval_f64(Prim::sigmoid, 1000), 1);
  EXPECT_EQ(eval_f64(Prim::sigmoid, 0), 0.5);
  EXPECT_EQ(eval_f64(Prim::reciprocal, -0.0), -kInf);
  EXPECT_EQ(eval_f64(Prim::rsqrt, 4), 0.5);
  EXPECT_EQ(eval_f64(Prim::fma, 1 + 0x1p-52, 1 - 0x1p-52, -1), -0x1p-104);
  EXPECT_EQ(eval_f64(Prim::atan2, 1, -0.0), M_PI / 2);
}

TEST(PrimEval, TestsWithNaNAreFalseButNe) {
  for (Prim prim : {Prim::eq, Prim::lt, Prim::le, Prim::gt, Prim::ge})
    EXPECT_FALSE(eval_test(prim, kNaN, kNaN));
  EXPECT_TRUE(eval_test(Prim::ne, kNaN, kNaN));
  EXPECT_TRUE(eval_test(Prim::isnan, kNaN));
  EXPECT_FALSE(eval_test(Prim::isnan, kInf));
}

TEST(PrimEval, DivisionByZeroAndOverflowDoNotTrap) {
  EXPECT_EQ(eval_i64(Prim::div, DType::i64, 7, 0), 0);
  EXPECT_EQ(eval_i64(Prim::rem, DType::i64, 7, 0), 7);
  EXPECT_EQ(eval_i64(Prim::div, DType::i64, kMin, -1), kMin);
  EXPECT_EQ(eval_i64(Prim::rem, DType::i64, kMin, -1), 0);
  EXPECT_EQ(eval_i64(Prim::div, DType::i8, -128, -1), -128);
  EXPECT_EQ(eval_i64(Prim::div, DType::i32, -7, 2), -3);
  EXPECT_EQ(eval_i64(Prim::rem, DType::i32, -7, 2), -1);
}

TEST(PrimEval, IntegersWrapToTheirType) {
  EXPECT_EQ(eval_i64(Prim::add, DType::i64, kMax, 1), kMin);
  EXPECT_EQ(eval_i64(Prim::mul, DType::i32, 1 << 20, 1 << 12), 0);
  EXPECT_EQ(eval_i64(Prim::sub, DType::u8, 0, 1), 255);
  EXPECT_EQ(eval_i64(Prim::neg, DType::i8, -128), -128);
  EXPECT_EQ(eval_i64(Prim::abs, DType::i8, -128), -128);
  EXPECT_EQ(eval_i64(Prim::bit_not, DType::u8, 0), 255);
  EXPECT_EQ(eval_i64(Prim::bit_not, DType::boolean, 1), 0);
  EXPECT_EQ(eval_i64(Prim::bit_not, DType::boolean, 0), 1);
}

TEST(PrimEval, ShiftsTakeTheCountModuloTheWidth) {
  EXPECT_EQ(eval_i64(Prim::shl, DType::i32, 1, 33), 2);
  EXPECT_EQ(eval_i64(Prim::shl, DType::u8, 0x81, 1), 2);
  EXPECT_EQ(eval_i64(Prim::shr, DType::i8, -128, 7), -1);
  EXPECT_EQ(eval_i64(Prim::shr, DType::u8, 128, 7), 1);
  EXPECT_EQ(eval_i64(Prim::shl, DType::i64, 1, -1), kMin);
}

TEST(PrimEval, ArraysAreTheSameFunctionElementByElement) {
  const double a[] = {-2, 0.5, 3}, b[] = {1, -0.0, kNaN};
  const std::int64_t i[] = {-5, 0, 100}, j[] = {3, 7, -100};
  for (const PrimInfo& row : kPrims) {
    if (row.prim == Prim::select) continue;
    const bool whole = row.operands != PrimClass::floating, real = row.operands != PrimClass::integral;
    double f[3];
    std::int64_t tests[3], n[3];
    if (real && row.to_bool) eval_test(row.prim, a, b, tests, 3);
    if (real && !row.to_bool) eval_f64(row.prim, a, b, a, f, 3);
    if (whole) eval_i64(row.prim, DType::i8, i, j, n, 3);
    for (int k = 0; k < 3; ++k) {
      if (real && row.to_bool) {
        EXPECT_EQ(tests[k], eval_test(row.prim, a[k], b[k])) << row.name;
      } else if (real) {
        const double one = eval_f64(row.prim, a[k], b[k], a[k]);
        EXPECT_TRUE(f[k] == one || (std::isnan(f[k]) && std::isnan(one))) << row.name;
      }
      if (whole) {
        EXPECT_EQ(n[k], eval_i64(row.prim, DType::i8, i[k], j[k])) << row.name;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::tile
