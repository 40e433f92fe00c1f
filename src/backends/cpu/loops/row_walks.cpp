// Chooses what each walk over a row fetches ahead, and which walks go backwards.
#include "backends/cpu/loops/row_walks.h"

#include "backends/cpu/loops/loop_shape.h"
#include "backends/cpu/machine/fitted.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tilewright::cpu {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::OpKind;

namespace {

bool is_load(const Instr& i) { return i.kind == Instr::Kind::compute && i.op->kind == OpKind::load; }

// About how long a loop takes, in operations on a vector.
double duration(const KernelText& k, const ElementLoop& loop) {
  double sum = kLoopOverhead;
  for (const LoopPart& part : split_by_reduced_axis(loop)) sum += vector_operations(part);
  if (k.kind.streaming_stores)
    for (const Instr& i : loop.body)
      if (i.kind == Instr::Kind::effect && i.op->kind == OpKind::store) sum += kStreamedStore;
  return sum;
}

// The two loops that take longest of `first` and those after it that walk as many elements, in their order.
std::vector<const ElementLoop*> two_longest(const KernelText& k, const std::vector<const ElementLoop*>& loops,
                                            std::size_t first) {
  std::vector<const ElementLoop*> found;
  for (std::size_t i = first; i < loops.size(); ++i) {
    if (loops[i]->shape != loops[first]->shape) continue;
    found.push_back(loops[i]);
    if (found.size() < 3) continue;
    const auto by_duration = [&](const ElementLoop* a, const ElementLoop* b) {
      return duration(k, *a) < duration(k, *b);
    };
    found.erase(std::min_element(found.begin(), found.end(), by_duration));
  }
  return found;
}

// Whether the values that several walks load or keep take more than the first-level cache, but not so much
// more that what is left there does not matter. Measured on Zen 5, the second walk backwards:
// softmax of rows of 8192 f32 (64 KiB) 8 % faster, layernorm and rmsnorm of 4096 (16 and 32 KiB) 6 and 2 %
// slower, cross_entropy of 50304 (393 KiB) 2 % slower.
bool overflows_first_level(const KernelText& k, const std::vector<const ElementLoop*>& loops,
                           const std::vector<Index>& shape) {
  std::map<std::pair<int, std::vector<tile::ValueId>>, std::pair<int, Index>> touched;  // walks, bytes
  for (const ElementLoop* loop : loops) {
    if (loop->shape != shape) continue;
    for (const Instr& i : loop->body) {
      const bool kept = i.kind == Instr::Kind::keep || i.kind == Instr::Kind::reload;
      if (!kept && !is_load(i)) continue;
      auto& [walks, bytes] =
          kept ? touched[{-1, {k.plan.storage(i.value)}}] : touched[{i.op->param, i.op->operands}];
      ++walks;
      bytes = shape[0] * memory_bytes(k.kernel.type(i.value).dtype);
    }
  }
  Index sum = 0;
  for (const auto& [what, how] : touched) sum += how.first > 1 ? how.second : 0;
  return sum > kFirstLevelBytes && sum <= kMostOfFirstLevelBytes;
}

}  // namespace

Index distance_ahead(const KernelText& k, const tile::Op& load) {
  const tile::ViewParam& view = k.kernel.views[static_cast<std::size_t>(load.param)];
  Index distance = 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const Index factor = k.affine.of(load.operands[d]).factor_of(tile::Affine::Variable::program, 0);
    if (factor != 0 && !view.strides[d].is_constant()) return 0;
    distance += factor == 0 ? 0 : factor * view.strides[d].value;
  }
  Index block_bytes = memory_bytes(view.dtype);
  for (const Index extent : k.kernel.type(load.results[0]).shape) block_bytes *= extent;
  return distance * std::max<Index>(ceil_div(kFarEnoughBytes, block_bytes), 1);
}

RowWalks choose_row_walks(const KernelText& k) {
  std::vector<const ElementLoop*> loops;
  for (const Step& step : k.plan.steps)
    if (step.kind == Step::Kind::elements && step.loop.shape.size() == 1) loops.push_back(&step.loop);
  RowWalks walks;
  std::set<std::pair<int, std::vector<tile::ValueId>>> seen;
  for (std::size_t i = 0; i < loops.size(); ++i)
    for (const Instr& instr : loops[i]->body) {
      if (!is_load(instr) || !seen.insert({instr.op->param, instr.op->operands}).second) continue;
      if (distance_ahead(k, *instr.op) == 0) continue;
      const std::vector<const ElementLoop*> longest = two_longest(k, loops, i);
      if (longest.size() < 2) continue;
      const double one = duration(k, *longest[0]), other = duration(k, *longest[1]);
      const int quarters = std::clamp(static_cast<int>(std::lround(4 * one / (one + other))), 1, 3);
      walks[longest[0]].ahead.push_back({&instr, 0, quarters});
      walks[longest[1]].ahead.push_back({&instr, quarters, 4 - quarters});
    }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (!overflows_first_level(k, loops, loops[i]->shape)) continue;
    const auto before = std::count_if(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const ElementLoop* l) { return l->shape == loops[i]->shape; });
    walks[loops[i]].backwards = before % 2 == 1;
  }
  return walks;
}

}  // namespace tilewright::cpu
