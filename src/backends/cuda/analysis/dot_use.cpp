// A loop of one dot where it is one, else a back-to-back matmul.
#include "backends/cuda/analysis/dot_use.h"

#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>
#include <set>

namespace tilewright::cuda {

using printer::Instr;
using printer::LoopPlan;
using printer::Step;
using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

Result<DotUse> find_dots(const Kernel& kernel, const tile::Schedule& schedule) {
  DotUse use;
  const DotUnit unit = dot_unit(schedule);
  if (unit == DotUnit::fma) return use;
  auto dot = find_tensor_dot(kernel, unit);
  if (is_for_chains(schedule)) {
    if (dot) return failure(Failure::Kind::unsupported, "dot: the loop is no back-to-back matmul");
    auto b2b = find_b2b_matmul(kernel, unit);
    if (!b2b) return b2b.error();
    use.b2b = std::move(*b2b);
  } else {
    if (!dot) return dot.error();
    use.dot = *dot;
  }
  if (store_stages(schedule) == 0) return use;
  auto results = find_tile_stores(kernel, use.dot ? *use.dot->dot : *use.b2b->dots.back().op);
  if (!results) return results.error();
  use.results = std::move(*results);
  const auto stages = kFetchStages * static_cast<Index>(use.results.size());
  if (use.dot && use.results[0].by_engine && store_stages(schedule) >= stages)
    use.loads = find_tile_loads(kernel, *use.dot->dot);
  return use;
}

std::vector<TensorBlock> tensor_blocks(const Kernel& kernel, const tile::Schedule& schedule,
                                       const DotUse& dots) {
  std::vector<TensorBlock> blocks;
  if (!is_wgmma(schedule)) return blocks;
  const auto add = [&](const TensorOperand& o) {
    blocks.push_back(tensor_block(kernel, o, o.shared && o.k_major ? launched_cluster(schedule) : 1));
  };
  if (dots.dot) {
    add(dots.dot->a);
    add(dots.dot->b);
    for (const TileLoad& l : dots.loads) blocks.push_back(l.block);
  } else if (dots.b2b) {
    for (const B2bBlock& b : dots.b2b->blocks) add(b.operand);
  }
  for (const TileStore& r : dots.results)
    if (r.by_engine) blocks.push_back(r.block);
  return blocks;
}

std::vector<TensorBlock> tensor_blocks(const Kernel& kernel, const tile::Schedule& schedule) {
  if (!is_wgmma(schedule)) return {};
  const auto dots = find_dots(kernel, schedule);
  return dots ? tensor_blocks(kernel, schedule, *dots) : std::vector<TensorBlock>();
}

namespace {

// Whether an element loop does nothing but write zeros to `buffer`.
bool only_fills(const LoopPlan& plan, const Step& step, ValueId buffer) {
  return step.kind == Step::Kind::elements &&
         std::all_of(step.loop.body.begin(), step.loop.body.end(), [&](const Instr& in) {
           return (in.kind == Instr::Kind::compute && in.op->kind == OpKind::constant) ||
                  (in.kind == Instr::Kind::keep && plan.storage(in.value) == buffer);
         });
}

// The plan without what the loop of a dot would read from memory: that loop brings its operands by itself.
LoopPlan plan_around(const TensorDot& dot, LoopPlan plan) {
  const ValueId accumulator = plan.storage(dot.dot->results[0]);
  if (dot.from_zero)
    std::erase_if(plan.steps, [&](const Step& s) { return only_fills(plan, s, accumulator); });
  for (Step& step : plan.steps)
    if (step.op == dot.loop && step.kind == Step::Kind::loop)
      std::erase_if(step.body[0],
                    [](const Step& s) { return s.kind != Step::Kind::scalar && s.kind != Step::Kind::dot; });
  std::set<ValueId> inside;
  for (const Op& op : dot.loop->blocks[0].ops)
    for (ValueId r : op.results) inside.insert(r);
  std::erase_if(plan.buffers,
                [&](ValueId v) { return inside.count(v) > 0 && plan.storage(v) != accumulator; });
  return plan;
}

}  // namespace

LoopPlan plan_for(const Kernel& kernel, const tile::Schedule& schedule, const DotUse& dots) {
  printer::LoopPolicy policy = loop_policy(kernel, schedule);
  if (dots.dot) return plan_around(*dots.dot, printer::plan_loops(kernel, policy));
  if (!dots.b2b) return printer::plan_loops(kernel, policy);
  policy.read_in_place = dots.b2b->in_place;
  policy.keep_above_flops = std::min(policy.keep_above_flops, kKeptFlops);
  policy.keep_unscaled = true;
  policy.lines.several_readers = !dots.b2b->scaled_accumulation();
  policy.load_before_dots = dots.b2b->scaled_accumulation();
  LoopPlan plan = printer::plan_loops(kernel, policy);
  // mma.sync adds to what is there; ptxas finds its zeros.
  if (is_wgmma(schedule)) erase_fills(*dots.b2b, plan);
  if (rounds(schedule) != tile::Rounds::apart) part_sums(*dots.b2b, plan);
  return plan;
}

}  // namespace tilewright::cuda
