// Plans walked side by side, kernel by kernel (kernel_pair.h).
#include "passes/plan/generalise.h"

#include "passes/plan/kernel_pair.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

using tile::PlanStep;

namespace {

bool same_steps(const tile::Plan& a, const tile::Plan& b) {
  return a.kernels.size() == b.kernels.size() &&
         std::equal(
             a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
             [](const PlanStep& x, const PlanStep& y) { return x.kind == y.kind && x.kernel == y.kernel; });
}

}  // namespace

Result<tile::Plan> fitted(const tile::Plan& general, const tile::Plan& plan) {
  if (!same_steps(general, plan)) return failure(Failure::Kind::unsupported, "other kernels");
  tile::Plan out = plan;
  out.kernels = general.kernels;
  try {
    for (PlanStep& step : out.steps) {
      if (step.kind != PlanStep::Kind::launch) continue;
      const auto k = static_cast<std::size_t>(step.kernel);
      const std::vector<std::int64_t> arguments = arguments_of(general.kernels[k], plan.kernels[k]);
      step.scalars.insert(step.scalars.end(), arguments.begin(), arguments.end());
    }
  } catch (const Differs& differs) {
    return failure(Failure::Kind::unsupported, differs.what);
  }
  return out;
}

Result<tile::Plan> generalise(const tile::Plan& plan, const tile::Plan& other) {
  tile::Plan out = plan;
  if (!same_steps(plan, other))
    return failure(
        Failure::Kind::unsupported,
        plan.kernels.size() == other.kernels.size()
            ? fmt::format("at another size the program runs its {} kernels otherwise", plan.kernels.size())
            : fmt::format("the program has {} kernels here, and {} at another size", plan.kernels.size(),
                          other.kernels.size()));
  try {
    for (PlanStep& step : out.steps) {
      if (step.kind != PlanStep::Kind::launch) continue;
      const auto k = static_cast<std::size_t>(step.kernel);
      auto [kernel, arguments] = general_kernel(plan.kernels[k], other.kernels[k]);
      out.kernels[k] = std::move(kernel);
      step.scalars.insert(step.scalars.end(), arguments.begin(), arguments.end());
    }
  } catch (const Differs& differs) {
    return failure(Failure::Kind::unsupported, differs.what);
  }
  return out;
}

}  // namespace tilewright::passes
