#include "harness/stats/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace tilewright::lab {
namespace {

// Times as a busy machine gives them: noise with a long tail, and a drift that both contenders share.
struct Machine {
  std::mt19937_64 random;
  double step;  // of the drift from round to round
  double drift = 0;
  Machine(std::uint64_t seed, double step) : random(seed), step(step) {}
  double sample(double us) {
    std::lognormal_distribution<double> tail(-4, 0.8);
    return us * (1 + drift) * (1 + tail(random));
  }
  void next_round() {
    std::normal_distribution<double> change(0, step);
    drift = std::max(drift + change(random), -0.5);
  }
};

struct Samples {
  std::vector<double> a, b;
};

Samples simulate(std::uint64_t seed, std::size_t rounds, double a_us, double b_us, double step = 0.003) {
  Machine machine(seed, step);
  Samples samples;
  for (std::size_t r = 0; r < rounds; ++r) {
    machine.next_round();
    samples.a.push_back(machine.sample(a_us));
    samples.b.push_back(machine.sample(b_us));
  }
  return samples;
}

int count_same(std::size_t rounds, double least_effect) {
  constexpr int kTrials = 400;
  int same = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Samples s = simulate(1000 + static_cast<std::uint64_t>(trial), rounds, 100, 100);
    const Speedup speedup = compare_paired(s.a, s.b, {.resamples = 500}, least_effect);
    same += speedup.verdict == Comparison::same ? 1 : 0;
  }
  return same * 100 / kTrials;
}

TEST(Stats, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Stats, TheIntervalHoldsTheMedianAndIsTheSameForTheSameSeed) {
  const Samples s = simulate(1, 40, 100, 100);
  const Estimate first = estimate_median(s.a), second = estimate_median(s.a);
  EXPECT_LE(first.ci.low, first.median);
  EXPECT_GE(first.ci.high, first.median);
  EXPECT_EQ(first.ci, second.ci);
  EXPECT_NE(estimate_median(s.a, {.resamples = 20}).ci,
            estimate_median(s.a, {.resamples = 20, .seed = 99}).ci);
}

// The 95 % interval of the median covers the true median about that often.
TEST(Stats, TheIntervalCoversTheTrueMedian) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> times(1.0);
  int covered = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(30);
    for (double& s : samples) s = times(random);
    const Interval ci = estimate_median(samples, {.resamples = 500}).ci;
    covered += ci.low <= std::log(2.0) && std::log(2.0) <= ci.high ? 1 : 0;
  }
  EXPECT_GE(covered, kTrials * 91 / 100);
  EXPECT_LE(covered, kTrials * 99 / 100);
}

TEST(Stats, FewSamplesGiveTheirExtremes) {
  const Estimate e = estimate_median(std::vector<double>{5, 1, 3});
  EXPECT_EQ(e.ci, (Interval{1, 5}));
}

TEST(Stats, IdenticalContendersAreTheSame) {
  EXPECT_GE(count_same(20, kLeastEffect), 95);
  EXPECT_GE(count_same(60, kLeastEffect), 95);
}

// Even without the least effect, chance alone seldom makes a winner.
TEST(Stats, TheIntervalAloneSeldomCallsAWinnerByChance) { EXPECT_GE(count_same(40, 0), 92); }

TEST(Stats, ARealDifferenceIsFoundDespiteTheDrift) {
  int faster = 0, slower = 0;
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    const Samples s = simulate(trial, 40, 100, 95);
    faster += compare_paired(s.a, s.b, {.resamples = 500}).verdict == Comparison::faster ? 1 : 0;
    slower += compare_paired(s.b, s.a, {.resamples = 500}).verdict == Comparison::slower ? 1 : 0;
  }
  EXPECT_GE(faster, 98);
  EXPECT_GE(slower, 98);
}

// A machine that speeds up and slows down by a multiple of the difference: only rounds taken as pairs can
// show it.
TEST(Stats, PairedRoundsSeeThroughAStrongDrift) {
  int faster = 0;
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    const Samples s = simulate(trial, 40, 110, 100, 0.05);
    faster += compare_paired(s.a, s.b, {.resamples = 500}).verdict == Comparison::faster ? 1 : 0;
  }
  EXPECT_GE(faster, 90);
}

TEST(Stats, DifferencesBelowTheLeastEffectAreNotCalled) {
  const std::vector<double> a(50, 100.0), b(50, 99.5);
  EXPECT_EQ(compare_paired(a, b).verdict, Comparison::same);
  EXPECT_EQ(compare_paired(a, b, {}, 0.001).verdict, Comparison::faster);
}

TEST(Stats, TheRatioIsTheBaselinesTimeOverTheContenders) {
  const Speedup s = compare_paired(std::vector<double>(10, 300.0), std::vector<double>(10, 100.0));
  EXPECT_DOUBLE_EQ(s.ratio, 3);
  EXPECT_EQ(s.verdict, Comparison::faster);
}

TEST(Stats, FewOverlappingRoundsAreTheSame) {
  EXPECT_EQ(compare_paired(std::vector<double>{10, 14, 11}, std::vector<double>{9, 12, 8}).verdict,
            Comparison::same);
  EXPECT_EQ(compare_paired(std::vector<double>{10, 14, 11}, std::vector<double>{1, 2, 1}).verdict,
            Comparison::faster);
}

TEST(Stats, UnpairedSamplesAreABug) {
  EXPECT_THROW(compare_paired(std::vector<double>{1, 2}, std::vector<double>{1}), std::logic_error);
}

}  // namespace
}  // namespace tilewright::lab
