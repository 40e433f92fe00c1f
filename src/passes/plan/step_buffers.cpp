// Buffers of a step by what is read and written, for all kinds of steps.
#include "passes/plan/step_buffers.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <optional>

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

std::vector<std::vector<std::size_t>> steps_to_wait_for(
    const std::vector<const std::map<int, StepUse>*>& uses, const std::vector<int>& memory) {
  struct Seen {
    std::optional<std::size_t> writer;
    std::vector<std::size_t> readers;  // since
  };
  std::map<int, Seen> seen;
  std::vector<std::vector<std::size_t>> out(uses.size());
  for (std::size_t s = 0; s < uses.size(); ++s)
    for (const auto& [b, use] : *uses[s]) {
      Seen& at = seen[memory[static_cast<std::size_t>(b)]];
      if (at.writer && *at.writer != s) out[s].push_back(*at.writer);
      if (!use.written) {
        at.readers.push_back(s);
        continue;
      }
      for (std::size_t r : at.readers)
        if (r != s) out[s].push_back(r);
      at = {s, {}};
    }
  return out;
}

int buffer_of(const tile::Plan& plan, tile::PlanBuffer::Role role, int position) {
  const auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(), [&](const tile::PlanBuffer& b) {
    return b.role == role && b.position == position;
  });
  TW_CHECK(found != plan.buffers.end(), "every input and output of a plan has a buffer");
  return static_cast<int>(found - plan.buffers.begin());
}

void rename_buffer(PlanStep& step, int from, int to) {
  for (tile::ViewBinding& v : step.views)
    if (v.buffer == from) v.buffer = to;
  for (int* buffer : {&step.buffer, &step.from})
    if (*buffer == from) *buffer = to;
}

}  // namespace tilewright::passes
