// The parity check with the inputs that hand-written kernels want: no odd values, integers that may serve as
// indices.
#pragma once

#include "backends/backend.h"

#include <string>

namespace tilewright::testing_support {

struct KernelCheck {
  tile::Schedule schedule;
  double error_scale = 4;  // times each op's error: backends may contract and reorder
  unsigned seed = 1;
};

// `problem` is empty when all is well; else it says what differs, where, and has the printed source.
// `refused` tells a schedule that the backend does not take from a mistake.
struct CheckResult {
  std::string problem;
  std::string refused;
  std::string source;
};
CheckResult check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const std::vector<std::int64_t>& scalars, const KernelCheck& check);

}  // namespace tilewright::testing_support
