// Facts of a kernel that are found once before it is printed: definitions, written views, values that are
// only stored.
#include "backends/cuda/print/kernel_facts.h"

#include "backends/cuda/layout/layout.h"
#include "backends/printer/powers_below.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// Users stand behind what they use, so they are looked at first. A tile that a dot reads is kept as it is
// stored, and a choice between two values rounds neither.
std::vector<bool> find_only_stored(const tile::Kernel& kernel) {
  std::vector<bool> only_stored(kernel.values.size(), true);
  std::vector<const Op*> ops;
  tile::for_each_op(kernel.body, [&](const Op& op) { ops.push_back(&op); });
  const auto long_both_ways = [&](ValueId v) { return long_axes(kernel.type(v).shape).size() == 2; };
  for (auto op = ops.rbegin(); op != ops.rend(); ++op)
    for (std::size_t i = 0; i < (*op)->operands.size(); ++i) {
      const ValueId v = (*op)->operands[i];
      const bool stored = i == 0 && ((*op)->kind == OpKind::store || (*op)->kind == OpKind::scatter);
      const bool multiplied = i < 2 && (*op)->kind == OpKind::dot && long_both_ways(v);
      const bool chosen = i > 0 && (*op)->kind == OpKind::apply && (*op)->prim == tile::Prim::select &&
                          only_stored[static_cast<std::size_t>((*op)->results[0])];
      if (!stored && !multiplied && !chosen) only_stored[static_cast<std::size_t>(v)] = false;
    }
  return only_stored;
}

}  // namespace

KernelFacts::KernelFacts(const tile::Kernel& kernel)
    : accuracy(printer::needed_accuracy(kernel)),
      view_uses(tile::view_uses(kernel)),
      definitions(printer::definitions(kernel)),
      only_stored(find_only_stored(kernel)) {}

}  // namespace tilewright::cuda
