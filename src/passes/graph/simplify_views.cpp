// Rewrites of views and reductions.
#include "passes/graph/simplify_parts.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;
using Replacement = std::optional<Value>;

Value add_node(const Value& x, const ir::Op& op, const ir::Attrs& attrs) {
  return {x.graph, x.graph->add(op, {x.id}, attrs)};
}

Replacement view_of_same(const Candidate& n) {
  const bool whole = n.is(ops::kReshape) || n.is(ops::kExpand);
  if (whole && n.x[0].shape() == n.type.shape) return n.x[0];
  if (n.is(ops::kTranspose)) {
    const Value kept =
        ops::transpose(n.x[0], n.attrs.integers("perm"));  // returns its operand when nothing moves
    if (same(kept, n.x[0])) return kept;
  }
  if (n.is(ops::kSlice)) {
    const Value kept = ops::slice(n.x[0], n.attrs.integers("start"), n.attrs.integers("step"), n.type.shape);
    if (same(kept, n.x[0])) return kept;
  }
  if (n.is(ops::kPad) && n.x[0].shape() == n.type.shape) return n.x[0];
  if (n.is(ops::kConcat) && n.x.size() == 1) return n.x[0];
  return {};
}

Replacement view_of_constant(const Candidate& n) {
  switch (n.op.kind) {
    case OpClass::reshape:
    case OpClass::transpose:
    case OpClass::expand:
    case OpClass::slice:
      if (constant_of(n.x[0])) return constant_at(n.x[0], n.type.shape);
      return {};
    default:
      return {};
  }
}

Replacement reshape_of_reshape(const Candidate& n) {
  if (n.is(ops::kReshape) && is_a(n.x[0], ops::kReshape))
    return ops::reshape(operand_of(n.x[0]), n.type.shape);
  return {};
}

Replacement expand_of_expand(const Candidate& n) {
  if (n.is(ops::kExpand) && is_a(n.x[0], ops::kExpand))
    return ops::broadcast_to(operand_of(n.x[0]), n.type.shape);
  return {};
}

Replacement transpose_of_transpose(const Candidate& n) {
  if (!n.is(ops::kTranspose) || !is_a(n.x[0], ops::kTranspose)) return {};
  const std::vector<Index>& inner = node_of(n.x[0]).attrs.integers("perm");
  std::vector<Index> perm;
  for (Index axis : n.attrs.integers("perm")) perm.push_back(inner[static_cast<std::size_t>(axis)]);
  return ops::transpose(operand_of(n.x[0]), perm);
}

Replacement slice_of_slice(const Candidate& n) {
  if (!n.is(ops::kSlice) || !is_a(n.x[0], ops::kSlice)) return {};
  const ir::Attrs& inner = node_of(n.x[0]).attrs;
  std::vector<Index> start;
  std::vector<Index> step;
  for (std::size_t i = 0; i < n.attrs.integers("start").size(); ++i) {
    const bool empty = n.type.shape[static_cast<int>(i)] == 0;
    const Index inner_step = inner.integers("step")[i];
    const Index first = inner.integers("start")[i] + n.attrs.integers("start")[i] * inner_step;
    const bool single = n.type.shape[static_cast<int>(i)] == 1;
    start.push_back(empty ? 0 : first);
    step.push_back(empty || single ? 1 : n.attrs.integers("step")[i] * inner_step);
  }
  return ops::slice(operand_of(n.x[0]), start, step, n.type.shape);
}

// A transpose that only moves unit axes is a reshape, which costs nothing anywhere.
Replacement transpose_of_units(const Candidate& n) {
  if (!n.is(ops::kTranspose)) return {};
  Index last = -1;
  for (Index axis : n.attrs.integers("perm")) {
    if (n.x[0].shape()[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return {};
    last = axis;
  }
  return ops::reshape(n.x[0], n.type.shape);
}

Replacement reduce_of_reduce(const Candidate& n) {
  if (!is_fold(n.op) || !is_a(n.x[0], n.op)) return {};
  const std::vector<Index>& inner = node_of(n.x[0]).attrs.integers("axes");
  std::vector<Index> axes = inner;
  const int rank = operand_of(n.x[0]).shape().rank();
  std::vector<Index> kept;  // the axes that the inner reduction left
  for (Index axis = 0; axis < rank; ++axis)
    if (!std::binary_search(inner.begin(), inner.end(), axis)) kept.push_back(axis);
  for (Index axis : n.attrs.integers("axes")) axes.push_back(kept[static_cast<std::size_t>(axis)]);
  std::sort(axes.begin(), axes.end());
  return add_node(operand_of(n.x[0]), n.op, {{"axes", axes}});
}

// Reducing an axis of one element changes no number.
Replacement reduce_units(const Candidate& n) {
  if (!is_fold(n.op)) return {};
  std::vector<Index> real;
  std::vector<Index> shape;
  const std::vector<Index>& axes = n.attrs.integers("axes");
  for (int axis = 0; axis < n.x[0].shape().rank(); ++axis) {
    const bool unit = n.x[0].shape()[axis] == 1;
    const bool reduced = std::binary_search(axes.begin(), axes.end(), Index{axis});
    if (unit && reduced) continue;
    if (reduced) real.push_back(static_cast<Index>(shape.size()));
    shape.push_back(n.x[0].shape()[axis]);
  }
  if (real.size() == axes.size()) return {};
  const Value squeezed = ops::reshape(n.x[0], Shape(shape));
  if (real.empty()) return squeezed;
  return add_node(squeezed, n.op, {{"axes", real}});
}

// Along a stretched axis all elements are equal: sum multiplies, max, min, any and all take one.
Replacement reduce_of_expand(const Candidate& n) {
  if (!is_fold(n.op) || n.is(ops::kProd) || !is_a(n.x[0], ops::kExpand)) return {};
  const Value x = operand_of(n.x[0]);
  Shape partial = n.x[0].shape();  // expanded along the other axes only
  Index count = 1;
  for (Index axis : n.attrs.integers("axes")) {
    const int at = static_cast<int>(axis);
    if (x.shape()[at] == partial[at]) continue;
    count *= partial[at];
    partial[at] = 1;
  }
  if (count <= 1) return {};
  const Value reduced = add_node(ops::broadcast_to(x, partial), n.op, n.attrs);
  if (!n.is(ops::kSum)) return reduced;
  if (is_float(n.type.dtype)) return ops::mul(reduced, static_cast<double>(count));
  return ops::mul(reduced, count);
}

Replacement reduce_of_constant(const Candidate& n) {
  if (!is_fold(n.op) || n.is(ops::kProd) || !constant_of(n.x[0])) return {};
  Index count = 1;
  for (Index axis : n.attrs.integers("axes")) count *= n.x[0].shape()[static_cast<int>(axis)];
  if (count == 0) return {};
  const Value one = constant_at(n.x[0], n.type.shape);
  if (!n.is(ops::kSum)) return one;
  if (is_float(n.type.dtype)) return ops::mul(one, static_cast<double>(count));
  return ops::mul(one, count);
}

constexpr Rewrite kViewRewrites[] = {
    {"view_of_same", "reshape, expand, transpose, slice, pad, concat that change nothing", view_of_same},
    {"view_of_constant", "a view of a constant is a constant of another shape", view_of_constant},
    {"reshape_of_reshape", "the last shape counts", reshape_of_reshape},
    {"expand_of_expand", "the last shape counts", expand_of_expand},
    {"transpose_of_transpose", "one permutation", transpose_of_transpose},
    {"transpose_of_units", "moving only unit axes is a reshape", transpose_of_units},
    {"slice_of_slice", "one start and step", slice_of_slice},
    {"reduce_of_reduce", "sum(sum(x)) over the union of the axes; also prod, max, min, any, all",
     reduce_of_reduce},
    {"reduce_units", "reducing axes of one element is a reshape", reduce_units},
    {"reduce_of_expand", "sum(expand(x)) = count * sum(x); max, min, any, all skip stretched axes",
     reduce_of_expand},
    {"reduce_of_constant", "sum(constant) = count * constant; max, min, any, all = constant",
     reduce_of_constant},
};

}  // namespace

std::span<const Rewrite> view_rewrites() { return kViewRewrites; }

}  // namespace tilewright::passes
