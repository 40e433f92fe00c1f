// One walk over buffers and steps, for reading and for writing.
#include "passes/plan/plan_numbers.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::passes {

using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

// Calls `visit(dtype, number)` for each number of the plan, in the order of numbers_of().
template <class P, class Visit>
void for_each_number(P& plan, const Visit& visit) {
  for (auto& buffer : plan.buffers) visit(DType::i64, buffer.elements);
  for (auto& step : plan.steps) {
    for (auto& view : step.views) visit(DType::i64, view.offset);
    for (std::size_t i = 0; i < step.scalars.size(); ++i)
      visit(plan.kernels[static_cast<std::size_t>(step.kernel)].scalars[i].dtype, step.scalars[i]);
  }
}

}  // namespace

std::vector<PlanNumber> numbers_of(const Plan& plan) {
  std::vector<PlanNumber> out;
  for_each_number(plan, [&](DType dtype, std::int64_t number) { out.push_back({dtype, number}); });
  return out;
}

void set_numbers(Plan& plan, std::span<const std::int64_t> numbers) {
  std::size_t at = 0;
  for_each_number(plan, [&](DType, std::int64_t& number) { number = numbers[at++]; });
  TW_CHECK(at == numbers.size(), "numbers of another plan");
}

bool same_but_numbers(const Plan& a, const Plan& b) {
  const auto same_buffer = [](const PlanBuffer& x, const PlanBuffer& y) {
    return x.role == y.role && x.position == y.position && x.dtype == y.dtype &&
           (x.arena_offset < 0) == (y.arena_offset < 0);
  };
  const auto same_view = [](const tile::ViewBinding& x, const tile::ViewBinding& y) {
    return x.buffer == y.buffer;
  };
  const auto same_step = [&](const PlanStep& x, const PlanStep& y) {
    return x.kind == y.kind && x.kernel == y.kernel && x.buffer == y.buffer && x.from == y.from &&
           x.scalars.size() == y.scalars.size() &&
           std::equal(x.views.begin(), x.views.end(), y.views.begin(), y.views.end(), same_view);
  };
  return std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(), same_buffer) &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same_step);
}

}  // namespace tilewright::passes
