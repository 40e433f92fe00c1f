// The search for two loops of a plan that are a row's maximum and its sum of powers (online softmax).
#include "backends/cuda/analysis/powers.h"

#include "backends/printer/powers_below.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Instr;
using printer::Step;
using tile::Monoid;
using tile::OpKind;
using tile::ValueId;

namespace {

// The reduction of a loop that besides it computes, and may keep what it reads, alone.
const Instr* only_reduction(const Step& step, bool may_keep) {
  if (step.kind != Step::Kind::elements) return nullptr;
  const Instr* out = nullptr;
  for (const Instr& in : step.loop.body) {
    if (in.kind == Instr::Kind::compute || in.kind == Instr::Kind::reload) continue;
    if (in.kind == Instr::Kind::keep && may_keep) continue;
    if (out || in.kind != Instr::Kind::reduce || in.op->kind != OpKind::reduce) return nullptr;
    out = &in;
  }
  return out;
}

int uses(const Step& loop, ValueId scalar) {
  int count = 0;
  for (const Instr& in : loop.loop.body)
    for (const printer::Ref& ref : in.operands) count += ref.is_scalar() && ref.scalar == scalar ? 1 : 0;
  return count;
}

}  // namespace

std::vector<JoinedExchange> joined_exchanges(const tile::Kernel& kernel, const printer::LoopPlan& plan) {
  std::vector<JoinedExchange> out;
  const std::vector<const tile::Op*> by = printer::definitions(kernel);
  const std::vector<Step>& steps = plan.steps;
  for (auto first = steps.begin(); first != steps.end(); ++first) {
    const Instr* max = only_reduction(*first, true);
    if (!max || max->op->monoid != Monoid::max || kernel.type(max->value).rank() != 0 ||
        kernel.type(max->value).dtype != DType::f32)
      continue;
    const auto second =
        std::find_if(first + 1, steps.end(), [](const Step& s) { return s.kind != Step::Kind::scalar; });
    const Instr* sum = second == steps.end() ? nullptr : only_reduction(*second, false);
    if (!sum) continue;
    const auto powers = printer::powers_below(by, *sum->op);
    if (!powers || powers->max != max->value || kernel.type(sum->value).rank() != 0 ||
        uses(*second, max->value) != 1)
      continue;
    const bool waits = std::all_of(first + 1, second, [&](const Step& s) {
      return std::all_of(s.op->results.begin(), s.op->results.end(),
                         [&](ValueId v) { return uses(*second, v) == 0; });
    });
    if (waits) out.push_back({max->value, sum->value, first - steps.begin(), second - steps.begin()});
  }
  return out;
}

}  // namespace tilewright::cuda
