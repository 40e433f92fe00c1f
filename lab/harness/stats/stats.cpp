// The bootstrap.
#include "harness/stats/stats.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tilewright::lab {

namespace {

constexpr std::size_t kFewSamples = 6;

// SplitMix64 (G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators, 2014): ours, so
// that an interval does not depend on a standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    // The high 32 bits scaled to [0, n): sample counts are far below 2^32, so the bias is too small to
    // matter.
    return static_cast<std::size_t>(((z >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

double median_inplace(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Interval percentiles(std::vector<double>& values, double confidence) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    const double place = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  return {at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

}  // namespace

double median(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return median_inplace(copy);
}

Estimate estimate_median(std::span<const double> samples, const BootstrapOptions& options) {
  Estimate estimate{median(samples), {}};
  if (samples.empty()) return {estimate.median, {estimate.median, estimate.median}};
  if (samples.size() < kFewSamples) {
    const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
    estimate.ci = {*low, *high};
    return estimate;
  }
  Random random(options.seed);
  std::vector<double> medians(static_cast<std::size_t>(options.resamples));
  std::vector<double> resample(samples.size());
  for (double& m : medians) {
    for (double& value : resample) value = samples[random.below(samples.size())];
    m = median_inplace(resample);
  }
  estimate.ci = percentiles(medians, options.confidence);
  return estimate;
}

std::string_view name(Comparison comparison) {
  switch (comparison) {
    case Comparison::faster:
      return "FASTER";
    case Comparison::slower:
      return "SLOWER";
    case Comparison::same:
      return "SAME";
  }
  return "?";
}

Comparison judge(double ratio, const Interval& ci, double least_effect) {
  if (ci.low > 1 && ratio > 1 + least_effect) return Comparison::faster;
  if (ci.high < 1 && ratio < 1 / (1 + least_effect)) return Comparison::slower;
  return Comparison::same;
}

Speedup compare_paired(std::span<const double> baseline, std::span<const double> contender,
                       const BootstrapOptions& options, double least_effect) {
  TW_CHECK(baseline.size() == contender.size() && !baseline.empty(), "paired samples come in pairs");
  Speedup speedup;
  speedup.ratio = median(baseline) / median(contender);
  if (baseline.size() < kFewSamples) {
    const auto [b_low, b_high] = std::minmax_element(baseline.begin(), baseline.end());
    const auto [c_low, c_high] = std::minmax_element(contender.begin(), contender.end());
    speedup.ci = {*b_low / *c_high, *b_high / *c_low};
  } else {
    Random random(options.seed);
    const std::size_t n = baseline.size();
    std::vector<double> ratios(static_cast<std::size_t>(options.resamples));
    std::vector<double> first(n), second(n);
    for (double& ratio : ratios) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t round = random.below(n);
        first[i] = baseline[round];
        second[i] = contender[round];
      }
      ratio = median_inplace(first) / median_inplace(second);
    }
    speedup.ci = percentiles(ratios, options.confidence);
  }
  speedup.verdict = judge(speedup.ratio, speedup.ci, least_effect);
  return speedup;
}

}  // namespace tilewright::lab
