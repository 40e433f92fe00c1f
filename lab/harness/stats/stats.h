// Medians, bootstrap intervals and verdicts: when one may say that one contender is faster than another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright::lab {

struct Interval {
  double low = 0, high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

double median(std::span<const double> values);  // NaN when empty

struct BootstrapOptions {
  int resamples = 2000;
  double confidence = 0.95;
  std::uint64_t seed = 1;  // the same seed and samples give the same interval
};

struct Estimate {
  double median = 0;
  Interval ci;  // of the median
};

// Percentile bootstrap of the median (B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993, ch.
// 13). Fewer than 6 samples: the smallest and the largest, which is what an order-statistic interval gives at
// 95 % there.
Estimate estimate_median(std::span<const double> samples, const BootstrapOptions& options = {});

enum class Comparison { faster, slower, same };
std::string_view name(Comparison comparison);  // "FASTER", "SLOWER", "SAME"

struct Speedup {
  double ratio = 1;  // median(baseline) / median(contender): above 1, the contender is faster
  Interval ci;       // of the ratio
  Comparison verdict = Comparison::same;
};

// Differences below this are not called a win. Two identical loops whose outputs lie at different addresses
// differed by 2.9 % here, with intervals of ±0.4 %: layout is not speed (T. Mytkowicz et al., Producing Wrong
// Data Without Doing Anything Obviously Wrong!, ASPLOS 2009).
inline constexpr double kLeastEffect = 0.03;

// Paired bootstrap of the ratio of medians: sample i of both was taken in the same round, so what slowed the
// machine for a while slowed both, and rounds are resampled as a whole. FASTER when the whole interval is
// above 1 and the ratio is above 1 + least_effect, SLOWER when it is below, else SAME. Fewer than 6 rounds:
// the interval is the extremes'. Both spans have the same length; throws std::logic_error otherwise.
Speedup compare_paired(std::span<const double> baseline, std::span<const double> contender,
                       const BootstrapOptions& options = {}, double least_effect = kLeastEffect);

// The verdict that an interval of a speedup allows.
Comparison judge(double ratio, const Interval& ci, double least_effect = kLeastEffect);

}  // namespace tilewright::lab
