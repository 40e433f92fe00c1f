#include "backends/cuda/print/kernel_facts.h"

#include "backends/cuda/layout/layout.h"
#include "backends/printer/powers_below.h"

#include <algorithm>
#include <optional>

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

// Nothing where an argument decides.
std::optional<double> constant_elements(const tile::ViewParam& view) {
  double elements = 1;
  for (const tile::Dim& extent : view.extents) {
    if (!extent.is_constant()) return std::nullopt;
    elements *= static_cast<double>(extent.value);
  }
  return elements;
}

std::optional<double> constant_programs(const tile::Kernel& kernel) {
  double programs = 1;
  for (const tile::GridAxis& axis : kernel.grid)
    for (const tile::GridFactor& factor : axis) {
      if (!factor.extent.is_constant()) return std::nullopt;
      programs *= static_cast<double>(ceil_div(factor.extent.value, factor.block));
    }
  return programs;
}

}  // namespace

bool KernelFacts::loads_own_elements(const tile::Kernel& kernel, const Op& load) const {
  if (std::none_of(load.operands.begin(), load.operands.end(),
                   [&](ValueId v) { return differs[static_cast<std::size_t>(v)]; }))
    return false;
  const auto programs = constant_programs(kernel),
             elements = constant_elements(kernel.views[static_cast<std::size_t>(load.param)]);
  if (!programs || !elements) return true;
  double block = 1;
  for (Index extent : kernel.type(load.results[0]).shape) block *= static_cast<double>(extent);
  return *programs * block < 2 * *elements;
}

KernelFacts::KernelFacts(const tile::Kernel& kernel)
    : accuracy(printer::needed_accuracy(kernel)),
      view_uses(tile::view_uses(kernel)),
      definitions(printer::definitions(kernel)),
      differs(printer::differ_between_programs(kernel)),
      only_stored(find_only_stored(kernel)) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::load || op.kind == OpKind::gather) ++loads_of_view[op.param];
  });
}

}  // namespace tilewright::cuda
