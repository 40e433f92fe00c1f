// Kernels on the emulated device against the interpreter.
#pragma once

#include "cuda_emulation/emulated_cuda.h"

#include "support/kernel_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace tilewright::emulation {

// What printing may change of a result: sums in another order, subnormal numbers as zeros.
inline test::ParityOptions as_printed() {
  return {.odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}};
}

// The kernel runs under the schedule, and gives what it means.
inline void expect_right(backends::Backend& backend, const tile::Kernel& kernel,
                         const tile::Schedule& schedule, const test::ParityOptions& options = as_printed()) {
  const auto r = test::check_kernel(backend, kernel, schedule, options);
  EXPECT_TRUE(r.problem.empty()) << r.problem;
  EXPECT_TRUE(r.refused.empty()) << r.refused;
}

// The schedule that the kernel takes first, checked as above; none is a failure.
inline std::optional<tile::Schedule> expect_first_right(backends::Backend& backend,
                                                        const tile::Kernel& kernel) {
  const auto candidates = backend.candidates(kernel);
  const auto first = std::find_if(candidates.begin(), candidates.end(),
                                  [](const backends::Candidate& c) { return c.refusal.empty(); });
  if (first == candidates.end()) {
    ADD_FAILURE() << kernel.name << ": no schedule";
    return std::nullopt;
  }
  expect_right(backend, kernel, first->schedule);
  return first->schedule;
}

}  // namespace tilewright::emulation
