// check_parity (parity.h) for a Backend: prints, compiles, loads and launches the kernel under one schedule.
#pragma once

#include "backends/backend.h"
#include "support/parity.h"

namespace tilewright::test {

struct KernelCheck {
  std::string problem;  // empty when all is well; else what differs, and the printed source
  std::string refused;  // not empty: the backend does not take this schedule
};
KernelCheck check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const tile::Schedule& schedule, const ParityOptions& options);

}  // namespace tilewright::test
