// Looks for a reshape behind a transpose on the way from a product to memory.
#include "passes/store/layout_propagation.h"

#include "ops/functions.h"
#include "passes/store/materialize_parts.h"

#include <algorithm>
#include <optional>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

namespace {

// What is computed and then stored: no rows that are picked from memory which lies as it lies.
bool is_computed(const ir::Node& n) {
  return n.op->kind == OpClass::pointwise || n.op->kind == OpClass::cast || n.op->kind == OpClass::reduce ||
         n.op->kind == OpClass::matmul;
}

// An exchange of axes, and the shape that a reshape makes of it.
struct Exchange {
  NodeId node = -1;
  Shape merged;
};

// The exchange of axes behind `view` that a reshape nearest to the product may merge; none where there is
// none, or where it is of memory that nobody computes.
std::optional<Exchange> exchanged_before_reshape(const Graph& graph, NodeId view) {
  if (!is_computed(graph.node(memory_of(graph, view)))) return std::nullopt;
  std::optional<Exchange> before;
  for (NodeId id = view; is_inlined(graph.node(id)); id = graph.node(id).operands[0]) {
    if (graph.node(id).op->kind == OpClass::reshape && !before)
      before = Exchange{graph.node(id).operands[0], graph.type(id).shape};
    if (graph.node(id).op->kind == OpClass::transpose && before) return before;
  }
  return std::nullopt;
}

// Axes that a reshape makes one of, as many groups as it can be cut into.
std::vector<std::vector<Index>> merged_axes(const Shape& from, const Shape& to) {
  std::vector<std::vector<Index>> groups(1);
  Index here = 1, there = 1;
  int next = 0;
  for (int axis = 0; axis < from.rank(); ++axis) {
    groups.back().push_back(axis);
    here *= from[axis];
    while (there < here && next < to.rank()) there *= to[next++];
    if (here == there && axis + 1 < from.rank()) groups.emplace_back();
  }
  return groups;
}

// A copy of a view, and of what a reshape of it looks at: whoever reads it by other shapes has the same copy.
NodeId copy_below_reshapes(Graph& graph, NodeId view) {
  const ir::Node n = graph.node(view);
  if (n.op->kind != OpClass::reshape || !is_inlined(graph.node(n.operands[0]))) return copy_of(graph, view);
  const ir::LocationScope scope(graph, n.location);
  return ops::reshape({&graph, copy_below_reshapes(graph, n.operands[0])}, n.type.shape).id;
}

// `exchange` read from a copy. The order of axes that are not merged is free: those come last that end with
// the memory's own last axis, so that rows stay rows, and a product and the gradient that reads the same
// value the other way round have one copy.
NodeId from_copy(Graph& graph, NodeId node, const Shape& merged) {
  const ir::Node n = graph.node(node);
  if (n.op->kind != OpClass::transpose) return copy_below_reshapes(graph, node);
  const std::vector<Index>& perm = n.attrs.integers("perm");
  std::vector<std::vector<Index>> groups = merged_axes(n.type.shape, merged);
  const auto is_last = [&](const std::vector<Index>& group) {
    return perm[static_cast<std::size_t>(group.back())] + 1 == n.type.shape.rank();
  };
  std::stable_partition(groups.begin(), groups.end(), [&](const auto& group) { return !is_last(group); });
  std::vector<Index> order, back(perm.size());
  for (const std::vector<Index>& group : groups)
    for (Index axis : group) {
      back[static_cast<std::size_t>(axis)] = std::ssize(order);
      order.push_back(perm[static_cast<std::size_t>(axis)]);
    }
  if (order == perm) return copy_of(graph, node);
  const ir::LocationScope scope(graph, n.location);
  const ir::Value stored = ops::transpose({&graph, n.operands[0]}, order);
  return ops::transpose({&graph, copy_below_reshapes(graph, stored.id)}, back).id;
}

// The loops of a product; more than any has if it cannot be walked.
std::size_t loops_of(const ProductAlone& product, const ir::Node& matmul) {
  constexpr std::size_t kNone = 1000;
  const auto nest = program_of(product, matmul);
  return nest ? nest->extents.size() : kNone;
}

// Whether the product has fewer loops if its operand `side` is read from a copy of the exchange.
bool copy_merges_loops(const Graph& graph, const ir::Node& matmul, const std::vector<NodeId>& operands,
                       std::size_t side, const Exchange& exchange) {
  ProductAlone product = alone(graph, operands);
  const std::size_t loops = loops_of(product, matmul);
  const NodeId from = product.known.at(exchange.node);
  product.operands[side] =
      view_of(product.graph, product.operands[side], from, from_copy(product.graph, from, exchange.merged));
  return loops_of(product, matmul) < loops;
}

}  // namespace

std::vector<NodeId> propagate_layout(Graph& graph, const ir::Node& matmul, std::vector<NodeId> operands) {
  if (matmul.type.shape.size() == 0) return operands;
  for (std::size_t side : {0, 1}) {
    const std::optional<Exchange> exchange = exchanged_before_reshape(graph, operands[side]);
    if (exchange && copy_merges_loops(graph, matmul, operands, side, *exchange))
      operands[side] =
          view_of(graph, operands[side], exchange->node, from_copy(graph, exchange->node, exchange->merged));
  }
  return operands;
}

}  // namespace tilewright::passes
