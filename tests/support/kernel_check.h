// Runs a kernel on a backend and compares every element it writes with the reference interpreter, within the
// bounds that rounding allows.
#pragma once

#include "backends/backend.h"

#include <optional>
#include <string>

namespace tilewright::testing_support {

struct KernelCheck {
  tile::Schedule schedule;
  double error_scale = 4;  // times each op's error: backends may contract and reorder
  unsigned seed = 1;
};

// Empty when all is well; else what differs, where, and the printed source. `refused` tells a schedule that
// the backend does not take from a mistake.
struct CheckResult {
  std::string problem;
  std::string refused;
  std::string source;
  std::string described;
};
CheckResult check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const std::vector<std::int64_t>& scalars, const KernelCheck& check);

}  // namespace tilewright::testing_support
