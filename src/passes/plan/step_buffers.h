// The buffers of a step of a plan: what it does to them, and other ones in their place.
#pragma once

#include <tilewright/tile/plan.h>

#include <map>
#include <vector>

namespace tilewright::passes {

struct StepUse {
  bool read = false, written = false;
};

// What a step does to each of its buffers. `views`: what its kernel does to its views; empty for copies and
// fillings with zeros.
std::map<int, StepUse> uses_of(const tile::PlanStep& step, const std::vector<tile::ViewUse>& views);
std::map<int, StepUse> uses_of(const tile::PlanStep& step, const tile::Plan& plan);

// The step with buffer `to` wherever it had `from`.
void rename_buffer(tile::PlanStep& step, int from, int to);

}  // namespace tilewright::passes
