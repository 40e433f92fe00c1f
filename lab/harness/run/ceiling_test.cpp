#include "harness/run/ceiling.h"

#include <gtest/gtest.h>

namespace tilewright::lab {
namespace {

constexpr double kMega = 1e6, kGiga = 1e9;

// A cache of 32 MB at 100 GB/s over a memory that copies at 40, reads at 50 and writes at 30; 200 GFLOP/s in
// f32.
Ceilings machine() {
  return {.levels = {{"L3", 32 * kMega, 110 * kGiga, 90 * kGiga, 100 * kGiga},
                     {"memory", 0, 50 * kGiga, 30 * kGiga, 40 * kGiga}},
          .math = {{perf::MathUnit::vector, DType::f32, 200 * kGiga}},
          .source = "made up"};
}

TEST(Floor, CopiesReadsAndWritesHaveTheirOwnRates) {
  const double mb = 1000 * kMega;
  EXPECT_NEAR(floor_of(vector_work(0, DType::f32, mb, mb), machine())->us, 50e3, 1);
  EXPECT_NEAR(floor_of(vector_work(0, DType::f32, mb, 0), machine())->us, 20e3, 1);
  EXPECT_NEAR(floor_of(vector_work(0, DType::f32, 0, mb), machine())->us, 33333, 1);
  EXPECT_NEAR(floor_of(vector_work(0, DType::f32, 3 * mb, mb), machine())->us, 50e3 + 40e3, 1);
}

TEST(Floor, TheWorkingSetDecidesTheLevel) {
  const auto small = floor_of(vector_work(0, DType::f32, kMega, kMega), machine());
  EXPECT_EQ(small->level, "L3");
  const auto rotated = floor_of(vector_work(0, DType::f32, kMega, kMega, 100 * kMega), machine());
  EXPECT_EQ(rotated->level, "memory");
  EXPECT_NEAR(rotated->us / small->us, 2.5, 1e-9);
}

TEST(Floor, ArithmeticBoundsWhatTrafficDoesNot) {
  const auto floor = floor_of(vector_work(200 * kGiga, DType::f32, kMega, kMega), machine());
  EXPECT_FALSE(floor->memory_bound);
  EXPECT_NEAR(floor->us, 1e6, 1);
}

TEST(Floor, ProductsAsTf32TakeHalfTheRateOfBf16) {
  Ceilings gpu = machine();
  gpu.math.push_back({perf::MathUnit::matrix, DType::f32, 60 * kGiga});
  gpu.math.push_back({perf::MathUnit::matrix, DType::bf16, 1000 * kGiga});
  Work work;
  work.cost.matrix[DType::f32] = work.cost.tf32 = 500 * kGiga;
  EXPECT_NEAR(floor_of(work, gpu)->us, 1e6, 1);
  EXPECT_NEAR(*impossible_below_us(work, gpu), 1e6, 1);
}

TEST(Floor, WithoutCeilingsThereIsNone) {
  EXPECT_FALSE(floor_of(vector_work(1, DType::f32, 1, 1), {}));
  EXPECT_FALSE(impossible_below_us(vector_work(1, DType::f32, 1, 1), {}));
  EXPECT_FALSE(floor_of(vector_work(1, DType::f16, 0, 0), machine()));  // no f16 rate was measured
}

TEST(Impossible, ACacheMayServeItsShareAndNoMore) {
  // 64 MB of which half fit in the cache: 32 MB at 110 GB/s and 32 MB at 50.
  const auto us = impossible_below_us(vector_work(0, DType::f32, 32 * kMega, 32 * kMega), machine());
  EXPECT_NEAR(*us, 32 * kMega / (110 * kGiga) * 1e6 + 32 * kMega / (50 * kGiga) * 1e6, 1e-6);
}

TEST(Impossible, IsNeverAboveTheFloor) {
  for (double mb : {0.1, 10.0, 31.0, 33.0, 64.0, 640.0}) {
    for (double share : {0.0, 0.3, 0.5, 1.0}) {
      const Work work = vector_work(mb * kMega, DType::f32, mb * share * kMega, mb * (1 - share) * kMega);
      EXPECT_LE(*impossible_below_us(work, machine()), floor_of(work, machine())->us * (1 + 1e-12))
          << mb << " " << share;
    }
  }
}

using Figures = std::vector<std::string>;

TEST(Impossible, TheFiguresThatATimeIsTooFastForAreNamed) {
  const Work copy = vector_work(2000, DType::f32, 100 * kMega, 100 * kMega);
  const double least = *impossible_below_us(copy, machine());
  EXPECT_EQ(beaten_figures(copy, machine(), least, 1.05), Figures());
  EXPECT_EQ(beaten_figures(copy, machine(), least / 1.04, 1.05), Figures()) << "within the slack";
  EXPECT_TRUE(beats_ceilings(copy, machine(), least / 1.06, 1.05));
  // The cache serves a share of it.
  EXPECT_EQ(beaten_figures(copy, machine(), least / 1.06, 1.05),
            (Figures{"level.L3.read_bytes_per_s", "level.L3.write_bytes_per_s", "level.L3.copy_bytes_per_s",
                     "memory.read_bytes_per_s", "memory.write_bytes_per_s", "memory.copy_bytes_per_s"}));
  const Work small = vector_work(2000, DType::f32, kMega, kMega);
  EXPECT_EQ(
      beaten_figures(small, machine(), 1, 1.05),
      (Figures{"level.L3.read_bytes_per_s", "level.L3.write_bytes_per_s", "level.L3.copy_bytes_per_s"}));
  const Work math = vector_work(200 * kGiga, DType::f32, kMega, kMega);
  EXPECT_EQ(beaten_figures(math, machine(), 5e5, 1.05), (Figures{"vector.f32"}));
  Work product;
  product.cost.matrix[DType::f32] = 200 * kGiga;
  Ceilings no_units = machine();
  no_units.math.push_back(
      {perf::MathUnit::matrix, DType::f32, 200 * kGiga});  // as ceilings_of() takes it from vector
  EXPECT_EQ(beaten_figures(product, no_units, 5e5, 1.05), (Figures{"matrix.f32", "vector.f32"}));
}

TEST(Ceilings, OfEachFigureTheBestSeenHolds) {
  Ceilings slower = machine();
  slower.levels[1].read = 20 * kGiga;
  slower.levels[0].copy = 300 * kGiga;
  slower.math[0].flops_per_s = 1;
  slower.math.push_back({perf::MathUnit::matrix, DType::bf16, 7});
  for (const Ceilings& best : {best_of(machine(), slower), best_of(slower, machine())}) {
    EXPECT_EQ(best.levels[1].read, 50 * kGiga);
    EXPECT_EQ(best.levels[0].copy, 300 * kGiga);
    EXPECT_EQ(math_rate(best, perf::MathUnit::vector, DType::f32), 200 * kGiga);
    EXPECT_EQ(math_rate(best, perf::MathUnit::matrix, DType::bf16), 7);
  }
}

TEST(Ceilings, OfPublishedHardwareHaveOneRateALevel) {
  perf::Hardware hardware;
  hardware.title = "A chip";
  hardware.memory_bytes_per_s.value = 2e12;
  hardware.levels = {{"L2", {5e7, ""}, 1, perf::Figure{6e12, ""}}, {"registers", {6e4, ""}, 132, {}}};
  hardware.matrix = {{DType::bf16, {9e14, ""}}};
  const Ceilings ceilings = ceilings_of(hardware);
  ASSERT_EQ(ceilings.levels.size(), 2u);
  EXPECT_EQ(ceilings.levels[0].copy, 6e12);
  EXPECT_EQ(ceilings.levels[1].read, 2e12);
  EXPECT_EQ(math_rate(ceilings, perf::MathUnit::matrix, DType::bf16), 9e14);
  EXPECT_FALSE(math_rate(ceilings, perf::MathUnit::vector, DType::bf16));
}

TEST(Ceilings, ProductsOfATypeWithoutMatrixUnitsGoAtTheRateOfMultiplyAddsOrOfParts) {
  perf::Hardware hardware;
  hardware.memory_bytes_per_s.value = 2e12;
  hardware.matrix = {{DType::bf16, {9e14, ""}}};
  hardware.vector = {{DType::f32, {6e13, ""}}, {DType::bf16, {1e14, ""}}};
  const Ceilings ceilings = ceilings_of(hardware);
  EXPECT_EQ(math_rate(ceilings, perf::MathUnit::matrix, DType::f32), 9e14 / 6);
  EXPECT_EQ(math_rate(ceilings, perf::MathUnit::matrix, DType::bf16), 9e14);
  hardware.matrix = {{DType::bf16, {3e14, ""}}};
  EXPECT_EQ(math_rate(ceilings_of(hardware), perf::MathUnit::matrix, DType::f32), 6e13);
}

}  // namespace
}  // namespace tilewright::lab
