// A sum over all axes as a sum along the rows, and one of what that leaves.
#include "passes/graph/sums_by_rows.h"

#include "ir/op.h"
#include "passes/graph/made_of.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <vector>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

constexpr std::size_t kMostSeen = 64;  // nodes between a sum and the statistics: chosen

// Whether a value was made from a reduction of a tensor of this shape by reshapes and pointwise steps.
// Statistics of another tensor do not count: attention divides by sums of weights, but has a product on chip
// and no row of it.
bool comes_from_reduction_of(const Shape& shape, const Graph& graph, NodeId id) {
  for (std::size_t steps = 0; steps < kMostSeen; ++steps) {
    const Node& n = graph.node(id);
    if (n.op->kind == OpClass::reduce) return graph.type(n.operands[0]).shape == shape;
    const bool passes =
        n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast || n.op->kind == OpClass::reshape;
    if (!passes || n.operands.empty()) return false;
    // The first operand that is no constant leads on: what is added to a variance is one.
    const auto next = std::find_if(n.operands.begin(), n.operands.end(),
                                   [&](NodeId o) { return graph.node(o).op->kind != OpClass::constant; });
    if (next == n.operands.end()) return false;
    id = *next;
  }
  return false;
}

// The axes along which statistics are stretched into a value. The first statistics that pointwise steps lead
// to decide.
std::vector<Index> stretched_axes(const Graph& graph, NodeId value) {
  std::vector<Index> axes;
  is_made_of(graph, value, kMostSeen, [&](const Node& n) {
    if (n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast) return Look::behind;
    if (n.op->kind != OpClass::expand || !comes_from_reduction_of(n.type.shape, graph, n.operands[0]))
      return Look::past;
    const Shape& from = graph.type(n.operands[0]).shape;
    for (int axis = 0; axis < n.type.shape.rank(); ++axis)
      if (from[axis] == 1 && n.type.shape[axis] > 1) axes.push_back(axis);
    return Look::found;
  });
  return axes;
}

}  // namespace

Graph with_sums_by_rows(const Graph& graph, const tile::Target& target) {
  const Index held = target.row_bytes / std::max(target.max_cluster, 1) / 4;  // f32, of one program
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
    if (!is_fold(*n.op) || x[0].shape().size() <= held) return std::nullopt;
    if (compute_dtype(n.type.dtype) != n.type.dtype) return std::nullopt;  // rows' sums would be rounded
    const std::vector<Index>& axes = n.attrs.integers("axes");
    std::vector<Index> rows, others;
    const std::vector<Index> stretched = stretched_axes(*x[0].graph, x[0].id);
    std::set_intersection(axes.begin(), axes.end(), stretched.begin(), stretched.end(),
                          std::back_inserter(rows));
    std::set_difference(axes.begin(), axes.end(), stretched.begin(), stretched.end(),
                        std::back_inserter(others));
    if (rows.empty() || others.empty()) return std::nullopt;
    Graph& out = *x[0].graph;
    const NodeId along = out.add(*n.op, {x[0].id}, {{"axes", rows}}, n.location);
    // The other axes move down once those of the rows are gone.
    for (Index& axis : others)
      axis -= std::count_if(rows.begin(), rows.end(), [&](Index row) { return row < axis; });
    return Value{&out, out.add(*n.op, {along}, {{"axes", others}}, n.location)};
  });
}

}  // namespace tilewright::passes
