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

// For each step those before it that it must stay behind: what wrote a buffer that it uses, and what reads
// one that it writes. Chains are told by their links alone. `memory`: of each buffer the one whose memory it
// has.
std::vector<std::vector<std::size_t>> steps_to_wait_for(
    const std::vector<const std::map<int, StepUse>*>& uses, const std::vector<int>& memory);

// The buffer of an input or an output of the plan.
int buffer_of(const tile::Plan& plan, tile::PlanBuffer::Role role, int position);

// The step with buffer `to` wherever it had `from`.
void rename_buffer(tile::PlanStep& step, int from, int to);

}  // namespace tilewright::passes
