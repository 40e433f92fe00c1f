// One exchange between warps for a row's maximum and its sum of powers below it. Each warp sums e^(x - m) by
// its own maximum m; the pairs (m, sum) then meet: the row's sum is Σ sum · e^(m - M), M = max m. As in
// online softmax (arXiv 1805.02867), with the parts of a row in place of its blocks.
#include "backends/cuda/analysis/powers.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::ValueId;

// Prints the warp's own maximum for the loop between a maximum and its sum, if both are exchanged together,
// behind that loop. Whether it did.
bool ReductionPrinter::print_own_maximum(const PrintedLoop& loop, const Reduction& max) {
  const ValueId v = loop.plan->body[max.instr].value;
  const auto& sums = plan_.elements.max_of_sum;
  const bool joined =
      std::any_of(sums.begin(), sums.end(), [&](const auto& pair) { return pair.second == v; });
  if (!joined || loop.layout.part != Part::cols || loop.frame.groups > 1) return false;
  deferred_.insert_or_assign(v, max);
  need("powers");
  const std::string own = out_.local(max.state + "_own");
  out_.line("const f32 {} = below_own({});", own, max.state);
  scalars_[v] = {own, DType::f32};
  return true;
}

// The maximum that is exchanged with this sum; from then on it is the row's.
std::optional<ReductionPrinter::Reduction> ReductionPrinter::take_deferred(const PrintedLoop& loop,
                                                                           const Reduction& sum) {
  const auto pair = plan_.elements.max_of_sum.find(loop.plan->body[sum.instr].value);
  const auto found = pair == plan_.elements.max_of_sum.end() ? deferred_.end() : deferred_.find(pair->second);
  if (found == deferred_.end()) return std::nullopt;
  Reduction max = found->second;
  scalars_[pair->second] = {max.state, DType::f32};
  deferred_.erase(found);
  return max;
}

}  // namespace tilewright::cuda
