// The steps of a round that run beside its last product, and those that must wait for it.
#include "backends/cuda/plan/b2b_rounds.h"

#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/plan/refusal.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::LoopPlan;
using printer::Step;
using tile::ValueId;

namespace {

bool meet(const std::set<ValueId>& a, const std::set<ValueId>& b) {
  return std::any_of(a.begin(), a.end(), [&](ValueId v) { return b.count(v) > 0; });
}

// Steps that wait for the last product when that begins with zeros: it is added a round later, when what they
// read beside it is already the next round's.
Status find_adding(const LoopPlan& plan, B2bRound& round) {
  std::set<ValueId> waited{plan.storage(round.late->op->results[0])}, read, scalars;
  std::vector<const Step*> others;
  for (const Step* s : round.after) {
    const BufferUses uses = buffer_uses(plan, *s);
    if (!meet(uses.all, waited)) {
      others.push_back(s);
      continue;
    }
    round.adding.push_back(s);
    add_scalars_read(*s, scalars);
    waited.insert(uses.written.begin(), uses.written.end());
    read.insert(uses.all.begin(), uses.all.end());
  }
  round.after = std::move(others);
  for (const auto* steps : {&round.between, &round.after})
    for (const Step* s : *steps) {
      const BufferUses uses = buffer_uses(plan, *s);
      if (meet(uses.all, waited))
        return refusal("intra_warpgroup_overlap: steps before a round's last product want the sum of them");
      for (ValueId v : uses.written)
        if (read.count(v) > 0) round.aside.insert(v);
    }
  for (const Step* s : round.scalars)
    if (!s->op->results.empty() && scalars.count(s->op->results[0]) > 0)
      return refusal("intra_warpgroup_overlap: what adds a round's last product reads a number of its round");
  return Unit{};
}

Result<B2bRound> round_of(const LoopPlan& plan, const Step& loop, const B2bDot& late) {
  B2bRound round{.late = &late};
  const ValueId sum = plan.storage(late.op->results[0]);
  bool passed = false;
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::dot && s.op == late.op)
      passed = true;
    else if (s.kind == Step::Kind::dot)
      round.first.push_back(&s);
    else if (s.kind == Step::Kind::scalar)
      round.scalars.push_back(&s);
    else if (passed)
      round.after.push_back(&s);
    else
      (keeps(plan, s, sum) ? round.sums : round.between).push_back(&s);
  }
  if (late.from_zero)
    if (Status s = find_adding(plan, round); !s) return s.error();
  return round;
}

// Loops cut in two go on without a gap: the last product of the one's last round runs under the steps of the
// other's first.
void find_next(const tile::Kernel& kernel, const B2bMatmul& b2b, const LoopPlan& plan, const Layouts& layouts,
               OverlappingRounds& out) {
  for (std::size_t i = 0; i + 1 < plan.steps.size(); ++i) {
    const Step &loop = plan.steps[i], &next = plan.steps[i + 1];
    if (!goes_on(b2b, kernel, loop, next)) continue;
    ++i;  // in pairs
    const B2bDot *late = late_dot(b2b, *loop.op), *other = late_dot(b2b, *next.op);
    const auto same_place = [&](ValueId a, ValueId b) {
      return layouts.buffers.at(plan.storage(a)) == layouts.buffers.at(plan.storage(b));
    };
    if (late && other && same_place(late->op->operands[0], other->op->operands[0]) &&
        same_place(late->op->results[0], other->op->results[0]))
      out.next[loop.op] = &next;
  }
}

}  // namespace

Result<OverlappingRounds> overlap_rounds(const tile::Kernel& kernel, const B2bMatmul& b2b,
                                         const LoopPlan& plan, const Layouts& layouts) {
  OverlappingRounds out;
  find_next(kernel, b2b, plan, layouts, out);
  std::vector<const Step*> loops;
  for (const Step& step : plan.steps) {
    const B2bDot* late = step.kind == Step::Kind::loop ? late_dot(b2b, *step.op) : nullptr;
    if (!late) continue;
    const ValueId left = plan.storage(late->op->operands[0]);
    if (std::none_of(step.body[0].begin(), step.body[0].end(),
                     [&](const Step& s) { return keeps(plan, s, left); }))
      return refusal("intra_warpgroup_overlap: operand a is not made in the loop");
    loops.push_back(&step);
  }
  if (loops.empty())
    return refusal("intra_warpgroup_overlap: no last product of a round whose operand a is computed");
  for (const Step* loop : loops) {
    auto round = round_of(plan, *loop, *late_dot(b2b, *loop->op));
    if (!round) return round.error();
    out.of_loop[loop->op] = std::move(*round);
  }
  for (const auto& [loop, next] : out.next)
    if (out.of_loop.at(loop).aside.size() != out.of_loop.at(next->op).aside.size())
      return refusal("intra_warpgroup_overlap: rounds that go on keep other things aside");
  return out;
}

}  // namespace tilewright::cuda
