// How long each step of an Executable takes, on given buffers.
#pragma once

#include "runtime/executable.h"

namespace tilewright::runtime {

struct StepTimes {
  std::vector<double> step_us;  // beside plan().steps; 0 for an empty launch
  double total_us = 0;          // of a whole run
};

struct StepTimesOptions {
  double budget_s = 0.5;  // of timing in all
};

// Medians of batches under the device's clock. Every step is run many times over: what atomics add up, and
// what is overwritten in place, is right again after the run with which this ends.
Result<StepTimes> time_steps(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
                             std::span<const std::shared_ptr<Buffer>> outputs,
                             const StepTimesOptions& options = {});

}  // namespace tilewright::runtime
