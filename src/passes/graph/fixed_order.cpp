// Scatters as reductions.
#include "passes/graph/fixed_order.h"

#include "ir/op.h"
#include "ops/functions.h"
#include "passes/graph/replace_nodes.h"

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;

bool adds_floats_by_index(const ir::Node& n) {
  return (n.op->kind == OpClass::scatter_add || n.op->kind == OpClass::scatter_add_along) &&
         is_float(n.type.dtype);
}

// result (A, V, B) = Σₙ where(index[n] == v, update (A, n, B), 0); of scatter_add_along the index is (A, n,
// B), too.
Value as_reduction(const ir::Node& scatter, Value index, Value update) {
  const Index axis = scatter.attrs.integer("axis");
  const std::vector<Index>& result = scatter.type.shape.extents();
  const bool along = scatter.op->kind == OpClass::scatter_add_along;
  const Index count = along ? index.shape()[static_cast<int>(axis)] : index.shape().size();
  // (A, places, count, B), or (1, places, count, 1).
  const auto shape = [&](Index places, Index counted, bool whole) {
    std::vector<Index> extents = whole ? result : std::vector<Index>(result.size(), 1);
    extents[static_cast<std::size_t>(axis)] = places;
    extents.insert(extents.begin() + axis + 1, counted);
    return Shape(extents);
  };
  const Value meant = ops::cast(ops::reshape(index, shape(1, count, along)), DType::i64);
  const Value place = ops::iota(*index.graph, shape(result[static_cast<std::size_t>(axis)], 1, false), axis);
  const Value terms = ops::where(ops::eq(meant, place), ops::reshape(update, shape(1, count, true)), 0.0);
  return ops::cast(ops::sum(terms, {axis + 1}), scatter.type.dtype);
}

}  // namespace

ir::Graph in_fixed_order(const ir::Graph& graph) {
  return replace_nodes(graph, [](const ir::Node& n, const std::vector<Value>& operands) {
    return adds_floats_by_index(n) ? std::optional(as_reduction(n, operands[0], operands[1])) : std::nullopt;
  });
}

}  // namespace tilewright::passes
