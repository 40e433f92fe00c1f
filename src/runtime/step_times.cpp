// Timing steps one by one, and the run as a whole.
#include "runtime/step_times.h"

#include <tilewright/base/clock.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace tilewright::runtime {

namespace {

// The median over batches that last at least 200 us, or that are one call.
Result<double> median_us(backends::Backend& backend, const std::function<Status()>& call, double budget_s) {
  constexpr double kBatchUs = 200;
  constexpr std::size_t kLeast = 5;
  std::vector<double> samples;
  int batch = 1;
  const double end = seconds_now() + budget_s;
  if (Status warm = call(); !warm) return warm.error();
  while (samples.size() < kLeast || seconds_now() < end) {
    if (Status s = backend.timer_start(); !s) return s.error();
    for (int i = 0; i < batch; ++i)
      if (Status s = call(); !s) return s.error();
    const auto us = backend.timer_stop_us();
    if (!us) return us.error();
    if (*us < kBatchUs && batch < 1 << 16) {
      batch *= 2;
      samples.clear();
      continue;
    }
    samples.push_back(*us / batch);
  }
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace

Result<StepTimes> time_steps(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
                             std::span<const std::shared_ptr<Buffer>> outputs,
                             const StepTimesOptions& options) {
  StepTimes times;
  // A whole run first: steps that follow others read what those wrote.
  if (Status ran = executable.run(inputs, outputs); !ran) return ran.error();
  backends::Backend& backend = executable.device().backend();
  const std::size_t steps = executable.plan().steps.size();
  const double each = options.budget_s / static_cast<double>(steps + 1);
  for (std::size_t s = 0; s < steps; ++s) {
    const auto us = median_us(backend, [&] { return executable.run_step(s); }, each);
    if (!us) return us.error();
    times.step_us.push_back(*us);
  }
  const auto total = median_us(backend, [&] { return executable.run(inputs, outputs); }, each);
  if (!total) return total.error();
  times.total_us = *total;
  return times;
}

}  // namespace tilewright::runtime
