// First and last uses of buffers, and the most bytes that are alive between two steps.
#include "passes/plan/plan_lives.h"

#include <algorithm>

namespace tilewright::passes {

using tile::PlanBuffer;

Index bytes_of(const PlanBuffer& buffer) {
  return std::max<Index>(buffer.elements * static_cast<Index>(size_bytes(buffer.dtype)), 1);
}

PlanLives::PlanLives(const RepeatingPlan& plan, const KernelUses& kernels)
    : plan_(plan), lives_(plan.buffers.size()), alive_(plan.steps.size(), 0) {
  uses_.reserve(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const tile::PlanStep& step = plan.steps[s].plan;
    const bool launches = step.kind == tile::PlanStep::Kind::launch;
    uses_.push_back(uses_of(
        step, launches ? kernels[static_cast<std::size_t>(step.kernel)] : std::vector<tile::ViewUse>()));
    for (const auto& [buffer, use] : uses_.back()) {
      Life& life = lives_[static_cast<std::size_t>(buffer)];
      const int at = static_cast<int>(s);
      if (life.first < 0) life.first = at;
      life.last = at;
      life.uses.push_back(at);
      if (use.written) {
        life.last_write = at;
        life.writers.push_back(at);
      } else if (life.first_read < 0) {
        life.first_read = at;
      }
    }
  }
  for (int b = 0; b < static_cast<int>(lives_.size()); ++b)
    if (is_temporary(b) && life(b).first >= 0)
      for (int s = life(b).first; s <= life(b).last; ++s) alive_[static_cast<std::size_t>(s)] += bytes(b);
  if (!alive_.empty())
    peak_ = static_cast<int>(std::max_element(alive_.begin(), alive_.end()) - alive_.begin());
}

Index PlanLives::bytes(int buffer) const { return bytes_of(plan_.buffers[static_cast<std::size_t>(buffer)]); }

bool PlanLives::has_role(int buffer, PlanBuffer::Role role) const {
  return plan_.buffers[static_cast<std::size_t>(buffer)].role == role;
}

bool PlanLives::is_made_at_once(int buffer) const {
  const Life& l = life(buffer);
  return !l.writers.empty() && l.first == l.writers.front() &&
         (l.first_read < 0 || l.last_write < l.first_read);
}

Index PlanLives::most_alive(int from, int to) const {
  Index most = 0;
  for (int s = from; s <= to; ++s) most = std::max(most, alive(s));
  return most;
}

}  // namespace tilewright::passes
