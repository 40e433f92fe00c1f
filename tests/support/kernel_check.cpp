// Options for check_parity, and its report in this form.
#include "support/kernel_check.h"

#include <fmt/format.h>

#include "support/backend_parity.h"

namespace tilewright::testing_support {

CheckResult check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const std::vector<std::int64_t>& scalars, const KernelCheck& check) {
  testing::ParityOptions options{.scalars = scalars,
                                 .seed = check.seed,
                                 .odd_share = 0,
                                 .model = {.scale = check.error_scale, .flush_subnormals = true}};
  constexpr Index kLargestIndex = 28;
  for (std::size_t v = 0; v < kernel.views.size(); ++v)
    options.integer_range[static_cast<int>(v)] = {0, is_bool(kernel.views[v].dtype) ? 1 : kLargestIndex};
  CheckResult result;
  const testing::ParityReport report =
      check_parity(kernel, options, testing::on_backend(backend, check.schedule, result.source));
  if (report.refused)
    result.refused = report.message;
  else if (!report.ok())
    result.problem = fmt::format("[{}] {}\n{}", to_string(check.schedule), report.message, result.source);
  return result;
}

}  // namespace tilewright::testing_support
