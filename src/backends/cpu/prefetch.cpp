// Which rows are fetched ahead, and in which loop.
#include "backends/cpu/prefetch.h"

#include "backends/cpu/loop_shape.h"

#include <algorithm>
#include <set>

namespace tilewright::cpu {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::OpKind;

namespace {

bool is_load(const Instr& i) { return i.kind == Instr::Kind::compute && i.op->kind == OpKind::load; }

double operations(const ElementLoop& loop) {
  double sum = 0;
  for (const LoopPart& part : split_by_reduced_axis(loop)) sum += vector_operations(part);
  return sum;
}

// Of the loops after `first` that walk as many elements, the one with most to compute.
const ElementLoop* busiest_after(const std::vector<const ElementLoop*>& loops, std::size_t first) {
  const ElementLoop* best = nullptr;
  for (std::size_t i = first + 1; i < loops.size(); ++i)
    if (loops[i]->shape == loops[first]->shape && (!best || operations(*loops[i]) > operations(*best)))
      best = loops[i];
  return best;
}

}  // namespace

Index next_program_distance(const KernelText& k, const tile::Op& load) {
  const tile::ViewParam& view = k.kernel.views[static_cast<std::size_t>(load.param)];
  Index distance = 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const Index factor = k.affine.of(load.operands[d]).factor_of(tile::Affine::Variable::program, 0);
    if (factor != 0 && !view.strides[d].is_constant()) return 0;
    distance += factor == 0 ? 0 : factor * view.strides[d].value;
  }
  return distance;
}

Prefetches choose_prefetches(const KernelText& k) {
  std::vector<const ElementLoop*> loops;
  for (const Step& step : k.plan.steps)
    if (step.kind == Step::Kind::elements && step.loop.shape.size() == 1) loops.push_back(&step.loop);
  Prefetches prefetches;
  std::set<std::pair<int, std::vector<tile::ValueId>>> seen;
  for (std::size_t i = 0; i < loops.size(); ++i)
    for (const Instr& instr : loops[i]->body) {
      if (!is_load(instr) || !seen.insert({instr.op->param, instr.op->operands}).second) continue;
      if (next_program_distance(k, *instr.op) == 0) continue;
      if (const ElementLoop* loop = busiest_after(loops, i)) prefetches[loop].push_back(&instr);
    }
  return prefetches;
}

}  // namespace tilewright::cpu
