// Schedules of the learning rate.
#include <tilewright/nn/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright::nn {

namespace {

// How much of the way from step `from` to step `to` is done.
double part_of_way(std::int64_t step, std::int64_t from, std::int64_t to) {
  if (step >= to) return 1;
  return step <= from ? 0 : static_cast<double>(step - from) / static_cast<double>(to - from);
}

double warm(const ScheduleOptions& options, std::int64_t step) {
  return options.rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup);
}

}  // namespace

double cosine_rate(const ScheduleOptions& options, std::int64_t step) {
  if (step < options.warmup) return warm(options, step);
  const double done = part_of_way(step, options.warmup, options.steps);
  return options.last_rate +
         (options.rate - options.last_rate) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

double wsd_rate(const ScheduleOptions& options, std::int64_t decay, std::int64_t step) {
  if (step < options.warmup) return warm(options, step);
  const std::int64_t from = std::max(options.warmup, options.steps - decay);
  return options.rate + (options.last_rate - options.rate) * part_of_way(step, from, options.steps);
}

}  // namespace tilewright::nn
