// Buffers of a step by what is read and written, for all kinds of steps.
#include "passes/plan/step_buffers.h"

namespace tilewright::passes {

using tile::PlanStep;

std::map<int, StepUse> uses_of(const PlanStep& step, const std::vector<tile::ViewUse>& views) {
  std::map<int, StepUse> out;
  if (step.kind != PlanStep::Kind::launch) {
    out[step.buffer].written = true;
    if (step.kind == PlanStep::Kind::copy) out[step.from].read = true;
    return out;
  }
  for (std::size_t v = 0; v < views.size(); ++v) {
    StepUse& use = out[step.views[v].buffer];
    use.read = use.read || views[v].read || views[v].accumulated;
    use.written = use.written || views[v].written || views[v].accumulated;
  }
  return out;
}

std::map<int, StepUse> uses_of(const PlanStep& step, const tile::Plan& plan) {
  if (step.kind != PlanStep::Kind::launch) return uses_of(step, std::vector<tile::ViewUse>());
  return uses_of(step, tile::view_uses(plan.kernels[static_cast<std::size_t>(step.kernel)]));
}

void rename_buffer(PlanStep& step, int from, int to) {
  for (tile::ViewBinding& v : step.views)
    if (v.buffer == from) v.buffer = to;
  for (int* buffer : {&step.buffer, &step.from})
    if (*buffer == from) *buffer = to;
}

}  // namespace tilewright::passes
