// Schedules of the learning rate: numbers of the host, given to a step as a scalar tensor.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// Steps are counted from 0. A rise from rate / warmup to `rate` in the first `warmup` steps comes first.
struct ScheduleOptions {
  double rate = 1e-3;       // the largest
  double last_rate = 1e-4;  // at `steps` and from there on
  std::int64_t warmup = 0;
  std::int64_t steps = 0;  // of the whole training
};
// From rate to last_rate along half a cosine.
double cosine_rate(const ScheduleOptions& options, std::int64_t step);
// Warm-up, stable, decay: rate, and in the last `decay` steps down to last_rate in a straight line.
double wsd_rate(const ScheduleOptions& options, std::int64_t decay, std::int64_t step);

}  // namespace tilewright::nn
#pragma GCC visibility pop
