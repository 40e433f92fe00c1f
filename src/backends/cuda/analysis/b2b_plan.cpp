// The loop plan of a back-to-back matmul: fills and sums that products make unnecessary are taken out of the
// element loops, which are cut into parts.
#include "backends/cuda/analysis/b2b_plan.h"

#include <algorithm>
#include <functional>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::LoopPlan;
using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

bool keeps(const LoopPlan& plan, const Instr& in, const std::set<ValueId>& buffers) {
  return in.kind == Instr::Kind::keep && buffers.count(plan.storage(in.value)) > 0;
}

bool is_root(const Instr& in) { return in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload; }

// The loop with those of its results alone that `wanted` names, and what they are made of.
ElementLoop part(const ElementLoop& loop, const std::function<bool(const Instr&)>& wanted) {
  std::vector<bool> needed(loop.body.size());
  for (std::size_t i = loop.body.size(); i-- > 0;) {
    needed[i] = is_root(loop.body[i]) ? wanted(loop.body[i]) : needed[i];
    if (!needed[i]) continue;
    for (const printer::Ref& ref : loop.body[i].operands)
      if (!ref.is_scalar()) needed[static_cast<std::size_t>(ref.instr)] = true;
  }
  ElementLoop out{loop.shape, {}};
  std::vector<int> place(loop.body.size(), -1);
  for (std::size_t i = 0; i < loop.body.size(); ++i) {
    if (!needed[i]) continue;
    place[i] = static_cast<int>(out.body.size());
    Instr in = loop.body[i];
    for (printer::Ref& ref : in.operands)
      if (!ref.is_scalar()) ref.instr = place[static_cast<std::size_t>(ref.instr)];
    out.body.push_back(std::move(in));
  }
  return out;
}

void erase_fills(const LoopPlan& plan, const std::set<ValueId>& filled, std::vector<Step>& steps) {
  for (Step& step : steps) {
    for (auto& body : step.body) erase_fills(plan, filled, body);
    if (step.kind == Step::Kind::elements)
      step.loop = part(step.loop, [&](const Instr& in) { return !keeps(plan, in, filled); });
  }
  std::erase_if(steps, [](const Step& s) { return s.kind == Step::Kind::elements && s.loop.body.empty(); });
}

void part_sums(const LoopPlan& plan, const std::set<ValueId>& sums, std::vector<Step>& body) {
  std::vector<Step> out;
  for (Step& step : body) {
    const auto is_sum = [&](const Instr& in) { return keeps(plan, in, sums); };
    const auto is_other = [&](const Instr& in) { return is_root(in) && !is_sum(in); };
    const auto& all = step.loop.body;
    if (step.kind != Step::Kind::elements || std::none_of(all.begin(), all.end(), is_sum) ||
        std::none_of(all.begin(), all.end(), is_other)) {
      out.push_back(std::move(step));
      continue;
    }
    Step rest{.kind = Step::Kind::elements}, own{.kind = Step::Kind::elements};
    rest.loop = part(step.loop, is_other);
    own.loop = part(step.loop, is_sum);
    out.push_back(std::move(rest));
    out.push_back(std::move(own));
  }
  body = std::move(out);
}

}  // namespace

void erase_fills(const B2bMatmul& b2b, LoopPlan& plan) {
  std::set<ValueId> filled;
  for (const B2bDot& d : b2b.dots)
    if (d.from_zero || d.loop_from_zero) filled.insert(plan.storage(d.op->results[0]));
  erase_fills(plan, filled, plan.steps);
}

double flops_of(const tile::Kernel& kernel, const B2bDot& dot) {
  const auto &a = kernel.type(dot.op->operands[0]).shape, &b = kernel.type(dot.op->operands[1]).shape;
  return 2.0 * static_cast<double>(a[0] * a[1] * b[1]);
}

bool chooses_elements(const tile::Kernel& kernel, const Op& loop) {
  return std::any_of(loop.blocks[0].ops.begin(), loop.blocks[0].ops.end(), [&](const Op& op) {
    return op.kind == OpKind::apply && op.prim == tile::Prim::select &&
           kernel.type(op.operands[0]).rank() == 2;
  });
}

Index drawn_elements(const tile::Kernel& kernel, const Op& loop) {
  Index elements = 0;
  for (const Op& op : loop.blocks[0].ops)
    if (op.kind == OpKind::random) elements += kernel.type(op.results[0]).size();
  return elements;
}

const B2bDot* late_dot(const B2bMatmul& b2b, const Op& loop) {
  const B2bDot* last = nullptr;
  int count = 0;
  for (const B2bDot& d : b2b.dots) {
    if (d.loop != &loop) continue;
    if (last != nullptr && (last->a < 0 || !last->from_zero)) return nullptr;
    last = &d;
    ++count;
  }
  return count > 1 && last->a < 0 ? last : nullptr;
}

namespace {

// The upper bound of a loop that runs only where one before it does, as a choice by that one's bounds; else
// null.
const Op* end_where_runs(const OperandReader& reader, const Op& before, const Op& loop) {
  const auto made_by = [&](ValueId v, tile::Prim prim) {
    const Op* op = reader.maker(v);
    return op && op->kind == OpKind::apply && op->prim == prim ? op : nullptr;
  };
  const Op* choice = made_by(loop.operands[1], tile::Prim::select);
  const Op* runs = choice ? made_by(choice->operands[0], tile::Prim::lt) : nullptr;
  const bool tests =
      runs && runs->operands[0] == before.operands[0] && runs->operands[1] == before.operands[1];
  return tests && choice->operands[2] == loop.operands[0] ? choice : nullptr;
}

}  // namespace

bool goes_on(const B2bMatmul& b2b, const tile::Kernel& kernel, const Step& loop, const Step& next) {
  if (loop.kind != Step::Kind::loop || next.kind != Step::Kind::loop) return false;
  const Op &before = *loop.op, &after = *next.op;
  if (!std::equal(before.results.begin(), before.results.end(), after.operands.begin() + 3,
                  after.operands.end()))
    return false;
  std::vector<std::pair<int, int>> blocks[2];
  for (const B2bDot& d : b2b.dots)
    if (d.loop == &before || d.loop == &after) blocks[d.loop == &after].push_back({d.a, d.b});
  if (blocks[0].empty() || blocks[0] != blocks[1]) return false;
  const OperandReader reader(kernel, tile::DotUnit::wgmma);
  return reader.trips(before) > 0 || end_where_runs(reader, before, after);
}

bool begins_by_row(const B2bMatmul& b2b, const tile::Kernel& kernel) {
  const OperandReader reader(kernel, tile::DotUnit::wgmma);
  const Op& last = *b2b.dots.back().loop;
  ValueId end = last.operands[1];
  for (const B2bDot& d : b2b.dots)
    if (const Op* choice = end_where_runs(reader, *d.loop, last)) end = choice->operands[1];
  return kernel.grid.size() > 1 && reader.follows(b2b.dots.front().loop->operands[0], 1) &&
         !reader.follows(end, 1);
}

bool differs_by_row(const B2bMatmul& b2b, const tile::Kernel& kernel) {
  const OperandReader reader(kernel, tile::DotUnit::wgmma);
  return kernel.grid.size() > 1 && (reader.follows(b2b.dots.front().loop->operands[0], 1) ||
                                    reader.follows(b2b.dots.back().loop->operands[1], 1));
}

void part_sums(const B2bMatmul& b2b, LoopPlan& plan) {
  for (Step& step : plan.steps) {
    if (step.kind != Step::Kind::loop) continue;
    if (const B2bDot* late = late_dot(b2b, *step.op))
      part_sums(plan, {plan.storage(late->op->results[0])}, step.body[0]);
  }
}

BufferUses buffer_uses(const LoopPlan& plan, const Step& step) {
  BufferUses uses;
  for (const Instr& in : step.loop.body) {
    if (in.kind == Instr::Kind::compute || in.value < 0) continue;
    uses.all.insert(plan.storage(in.value));
    if (in.kind != Instr::Kind::reload) uses.written.insert(plan.storage(in.value));
  }
  for (const auto& [from, to] : step.moves) {
    uses.all.insert({plan.storage(from), plan.storage(to)});
    uses.written.insert(plan.storage(to));
  }
  return uses;
}

bool touches(const LoopPlan& plan, const Step& step, const B2bDot& dot) {
  if (step.kind == Step::Kind::scalar) return false;
  if (step.kind != Step::Kind::elements && step.kind != Step::Kind::assign) return true;
  const BufferUses uses = buffer_uses(plan, step);
  return uses.all.count(plan.storage(dot.op->results[0])) > 0 ||
         (dot.a < 0 && uses.all.count(plan.storage(dot.op->operands[0])) > 0);
}

void add_scalars_read(const Step& step, std::set<ValueId>& read) {
  if (step.op != nullptr) read.insert(step.op->operands.begin(), step.op->operands.end());
  for (const Instr& in : step.loop.body) {
    if (in.op != nullptr) read.insert(in.op->operands.begin(), in.op->operands.end());
    for (const printer::Ref& ref : in.operands)
      if (ref.is_scalar()) read.insert(ref.scalar);
  }
  for (const auto& body : step.body)
    for (const Step& inner : body) add_scalars_read(inner, read);
}

bool keeps(const LoopPlan& plan, const Step& step, ValueId buffer) {
  return step.kind == Step::Kind::elements &&
         std::any_of(step.loop.body.begin(), step.loop.body.end(),
                     [&](const Instr& in) { return keeps(plan, in, {buffer}); });
}

}  // namespace tilewright::cuda
