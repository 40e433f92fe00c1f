// The report of check_parity, in a sentence with the schedule and the printed source.
#include "support/kernel_check.h"

#include <fmt/format.h>

#include "support/backend_parity.h"

namespace tilewright::test {

KernelCheck check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const tile::Schedule& schedule, const ParityOptions& options) {
  KernelCheck result;
  std::string source;
  const ParityReport report = check_parity(kernel, options, on_backend(backend, schedule, source));
  if (report.refused)
    result.refused = report.message;
  else if (!report.ok())
    result.problem = fmt::format("{} [{}]: {}\n{}", kernel.name, to_string(schedule), report.message, source);
  return result;
}

}  // namespace tilewright::test
