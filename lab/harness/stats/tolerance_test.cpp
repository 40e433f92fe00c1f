#include "harness/stats/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tilewright::lab {
namespace {

TEST(Tolerance, GammaIsTheDeterministicBound) {
  EXPECT_DOUBLE_EQ(gamma_bound(1, 0.25), 1.0 / 3);
  EXPECT_TRUE(std::isinf(gamma_bound(4, 0.25)));
  EXPECT_NEAR(gamma_bound(10, 1e-8), 1e-7, 1e-13);
}

TEST(Tolerance, TheProbabilisticBoundGrowsWithTheRoot) {
  EXPECT_NEAR(gamma_probable(1e6, 1e-9, 8) / gamma_probable(1e4, 1e-9, 8), 10, 0.01);
  EXPECT_LT(gamma_probable(1e6, 1e-9, 8), gamma_bound(1e6, 1e-9));
}

TEST(Tolerance, ExactOutputsAndIntegersMustBeEqual) {
  EXPECT_EQ(tolerance({.storage = DType::f32, .kind = ToleranceRule::Kind::exact}, 10), 0);
  EXPECT_EQ(tolerance({.storage = DType::i32, .operations = 9}, 10), 0);
}

TEST(Tolerance, NarrowStorageDominatesAndCountsItsRoundings) {
  const double once = tolerance({.storage = DType::bf16, .operations = 10}, 1000);
  EXPECT_GT(once, unit_roundoff(DType::bf16));
  EXPECT_LT(once, 1.01 * unit_roundoff(DType::bf16));
  EXPECT_NEAR(tolerance({.storage = DType::bf16, .operations = 10, .storage_roundings = 3}, 1000), 3 * once,
              0.1 * once);
}

TEST(Tolerance, IsTheSumOfItsParts) {
  const ToleranceRule rule{.storage = DType::bf16, .reduction = 100};
  const ToleranceParts parts = tolerance_parts(rule, 10);
  EXPECT_EQ(parts.storage, gamma_bound(1, unit_roundoff(DType::bf16)));
  EXPECT_GT(parts.compute, 0);
  EXPECT_EQ(tolerance(rule, 10), parts.storage + parts.compute);
}

TEST(Tolerance, LongReductionsGrowSlowerThanTheirLength) {
  EXPECT_EQ(reduction_chain(1), 0);
  EXPECT_EQ(reduction_chain(3), 2);
  EXPECT_EQ(reduction_chain(1000000), 2000);
  const double u = unit_roundoff(DType::f32);
  EXPECT_LT(tolerance({.storage = DType::f32, .reduction = 1000000}, 1), 400 * u);
}

// The bound must hold for a correct program: blocked f32 sums of positive terms, whose magnitude is their
// sum.
TEST(Tolerance, BlockedSumsStayWithinTheirBound) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (const std::size_t n : {10u, 1000u, 100000u}) {
    const double bound = tolerance({.storage = DType::f32, .reduction = static_cast<std::int64_t>(n)}, 1);
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<float> lanes(64, 0);
      double exact = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const float x = uniform(random);
        lanes[i % lanes.size()] += x;
        exact += x;
      }
      float sum = 0;
      for (float lane : lanes) sum += lane;
      EXPECT_LE(std::fabs(sum - exact) / exact, bound) << n;
    }
  }
}

// And it must not be loose: a million terms summed in f16 is a careless program.
TEST(Tolerance, AccumulatingInTheStorageTypeIsCaught) {
  const std::int64_t n = 4096;
  double exact = 0, sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    exact += 1.0;
    sum = round_to(DType::f16, sum + 1.0);  // stops at 2048
  }
  EXPECT_GT(std::fabs(sum - exact) / exact, tolerance({.storage = DType::f16, .reduction = n}, 1));
}

TEST(Tolerance, MoreElementsMayStrayFarther) {
  const ToleranceRule rule{.storage = DType::f32, .reduction = 100000};
  EXPECT_GT(tolerance(rule, 1 << 28), tolerance(rule, 1));
  EXPECT_LT(tolerance(rule, 1 << 28), 2 * tolerance(rule, 1));
}

}  // namespace
}  // namespace tilewright::lab
