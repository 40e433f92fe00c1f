// Taking program numbers apart.
#include "backends/cuda/library/program_digits.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Affine;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

ProgramDigits::ProgramDigits(const tile::Kernel& kernel)
    : kernel_(kernel), affine_(kernel, tile::known_statically(kernel)) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (const ValueId result : op.results) made_by_[result] = &op;
  });
}

std::optional<Index> ProgramDigits::constant(ValueId scalar) const {
  const Affine& form = affine_.of(scalar);
  return form.is_constant() ? std::optional(form.constant) : std::nullopt;
}

std::optional<Digit> ProgramDigits::whole_axis(int axis) const {
  const std::optional<Index>& count = affine_.known().grid.at(static_cast<std::size_t>(axis));
  if (!count || *count < 1) return std::nullopt;
  return Digit{axis, 1, *count};
}

// A program's place along an axis, or what div and rem by constants make of it.
std::optional<Digit> ProgramDigits::digit(ValueId scalar) const {
  const auto maker = made_by_.find(scalar);
  if (maker == made_by_.end()) return std::nullopt;
  const Op& op = *maker->second;
  if (op.kind == OpKind::program_id) return whole_axis(op.param);
  if (op.kind != OpKind::apply || (op.prim != Prim::div && op.prim != Prim::rem)) return std::nullopt;
  const std::optional<Digit> of = digit(op.operands[0]);
  const std::optional<Index> by = constant(op.operands[1]);
  if (!of || !by || *by < 1 || of->count % *by != 0) return std::nullopt;
  if (op.prim == Prim::rem) return Digit{of->axis, of->below, *by};
  return Digit{of->axis, of->below * *by, of->count / *by};
}

std::optional<Start> ProgramDigits::start(ValueId scalar) const {
  const Affine& form = affine_.of(scalar);
  Start out{.constant = form.constant};
  for (const Affine::Term& term : form.terms) {
    if (term.variable == Affine::Variable::loop) {
      out.depth += term.factor;
      continue;
    }
    if (term.variable == Affine::Variable::scalar) return std::nullopt;
    const std::optional<Digit> found =
        term.variable == Affine::Variable::program ? whole_axis(term.index) : digit(term.index);
    if (!found) return std::nullopt;
    if (found->count > 1) out.digits[*found] += term.factor;
  }
  std::erase_if(out.digits, [](const auto& each) { return each.second == 0; });
  return out;
}

bool ProgramDigits::number_programs(const std::map<Digit, Index>& digits) const {
  for (int axis = 0; axis < static_cast<int>(kernel_.grid.size()); ++axis) {
    const std::optional<Digit> whole = whole_axis(axis);
    if (!whole) return false;
    Index below = 1;  // digits come in the order of axis, then below
    for (const auto& [digit, factor] : digits) {
      if (digit.axis != axis) continue;
      if (digit.below != below) return false;
      below *= digit.count;
    }
    if (below != whole->count) return false;
  }
  return true;
}

}  // namespace tilewright::cuda
