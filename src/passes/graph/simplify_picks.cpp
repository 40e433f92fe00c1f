// Rewrites of sums that pick one element: Σ where(coordinate = index, v, 0) reads v at the index instead.
#include "passes/graph/simplify_parts.h"

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;
using Replacement = std::optional<Value>;

// A value at one place along an axis: what it is computed from, at that place.
class Picker {
 public:
  Picker(Value index, int axis) : index_(index), axis_(axis) {}

  Replacement pick(Value v, int depth = 0) const {
    constexpr int kMostOps = 8;  // each is computed again for what is picked
    if (depth > kMostOps) return {};
    const ir::Node& n = node_of(v);
    if (constant_of(v)) return constant_at(v, index_.shape());
    if (n.op->kind == OpClass::input) return ops::take_along(v, index_, axis_);
    if (n.op->kind == OpClass::iota && n.attrs.integer("axis") == axis_) return index_;
    if (n.op->kind == OpClass::expand) return before_expand(operand_of(v), v.shape());
    if (n.op->kind != OpClass::pointwise && n.op->kind != OpClass::cast) return {};
    std::vector<ir::NodeId> operands;
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      const Replacement picked = pick(operand_of(v, i), depth + 1);
      if (!picked) return {};
      operands.push_back(picked->id);
    }
    return Value{v.graph, v.graph->add(*n.op, operands, n.attrs)};
  }

 private:
  // What was stretched along the axis is the same everywhere.
  Replacement before_expand(Value u, const Shape& wide) const {
    const int axis = axis_ - (wide.rank() - u.shape().rank());
    if (axis >= 0 && u.shape()[axis] != 1) return {};
    return ops::broadcast_to(u, index_.shape());
  }

  Value index_;
  int axis_;
};

// The stretched operand of eq(iota along `axis`, expand(u)), with one element along the axis.
Replacement index_of_comparison(Value condition, int axis) {
  if (!is_a(condition, ops::kEq)) return {};
  for (std::size_t i : {0, 1}) {
    const Value coordinate = operand_of(condition, i), index = operand_of(condition, 1 - i);
    if (!is_a(coordinate, ops::kIota) || node_of(coordinate).attrs.integer("axis") != axis) continue;
    if (!is_a(index, ops::kExpand)) continue;
    const Value u = operand_of(index);
    std::vector<Index> shape = condition.shape().extents();
    shape[static_cast<std::size_t>(axis)] = 1;
    const int own = axis - (condition.shape().rank() - u.shape().rank());
    if (own >= 0 && u.shape()[own] != 1) continue;
    return ops::broadcast_to(u, Shape(shape));
  }
  return {};
}

Replacement sum_of_one(const Candidate& n) {
  if (!n.is(ops::kSum) || !is_a(n.x[0], ops::kWhere)) return {};
  const std::vector<Index> axes = n.attrs.integers("axes");
  if (axes.size() != 1 || !is_number(operand_of(n.x[0], 2), 0)) return {};
  const int axis = static_cast<int>(axes[0]);
  const Replacement index = index_of_comparison(operand_of(n.x[0]), axis);
  if (!index) return {};
  const Replacement picked = Picker(*index, axis).pick(operand_of(n.x[0], 1));
  if (!picked) return {};
  const Value inside = ops::logical_and(ops::ge(*index, Index{0}), ops::lt(*index, n.x[0].shape()[axis]));
  const Value zero = constant_at(operand_of(n.x[0], 2), index->shape());
  // The sum of -0 and zeros is +0.
  const Value sum = is_float(n.type.dtype) ? ops::add(ops::where(inside, *picked, zero), zero)
                                           : ops::where(inside, *picked, zero);
  return ops::reshape(sum, n.type.shape);
}

constexpr Rewrite kPickRewrites[] = {
    {"sum_of_one", "sum(where(iota = i, v, 0)) = v at i where v is pointwise in inputs: a gather",
     sum_of_one},
};

}  // namespace

std::span<const Rewrite> pick_rewrites() { return kPickRewrites; }

}  // namespace tilewright::passes
