// A product's graph by itself with its loop nest, and views moved to other memory.
#include "passes/store/materialize_parts.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "ops/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

namespace {

// Operands of views before them; what a view is made of stands once.
NodeId copied(const Graph& graph, NodeId id, ProductAlone& to) {
  if (const auto known = to.known.find(id); known != to.known.end()) return known->second;
  const ir::Node& n = graph.node(id);
  NodeId here = -1;
  if (is_inlined(n)) {
    std::vector<NodeId> operands;
    operands.reserve(n.operands.size());
    for (NodeId o : n.operands) operands.push_back(copied(graph, o, to));
    here = to.graph.add(*n.op, operands, n.attrs, n.location);
  } else {
    here = to.graph.add_input(fmt::format("m{}", to.known.size()), n.type);
    if (ops::has_pitch(n)) here = to.graph.add(*n.op, {here}, n.attrs, n.location);
  }
  return to.known[id] = here;
}

}  // namespace

ProductAlone alone(const Graph& graph, const std::vector<NodeId>& operands) {
  ProductAlone product;
  for (NodeId o : operands) product.operands.push_back(copied(graph, o, product));
  return product;
}

std::variant<LoopNest, Refusal> program_alone(const ProductAlone& product, const ir::Node& matmul) {
  Graph graph = product.graph;
  const NodeId id = graph.add(*matmul.op, product.operands, matmul.attrs, matmul.location);
  return build_loop_nest(graph, {{id}, {id}});
}

std::optional<LoopNest> program_of(const ProductAlone& product, const ir::Node& matmul) {
  auto nest = program_alone(product, matmul);
  if (const auto* found = std::get_if<LoopNest>(&nest); found && found->dot() >= 0) return *found;
  return std::nullopt;
}

std::optional<LoopNest> program_of(const Graph& graph, const ir::Node& matmul,
                                   const std::vector<NodeId>& operands) {
  return program_of(alone(graph, operands), matmul);
}

NodeId memory_of(const Graph& graph, NodeId id) {
  while (is_inlined(graph.node(id)) && graph.node(id).operands.size() == 1) id = graph.node(id).operands[0];
  return id;
}

NodeId view_of(Graph& graph, NodeId view, NodeId from, NodeId to) {
  if (view == from) return to;
  const ir::Node n = graph.node(view);
  return graph.add(*n.op, {view_of(graph, n.operands[0], from, to)}, n.attrs, n.location);
}

NodeId copy_of(Graph& graph, NodeId id) {
  const std::string dtype(name(graph.type(id).dtype));
  return graph.add(ops::kCast, {id}, {{"dtype", dtype}}, graph.node(id).location);
}

std::optional<NodeId> reduction_of_nothing(Graph& graph, const ir::Node& node, const ir::Type& operand) {
  const auto is_empty = [&](Index axis) { return operand.shape[static_cast<int>(axis)] == 0; };
  tile::Monoid monoid = tile::Monoid::sum;
  if (node.op->kind == ir::OpClass::matmul) {
    if (!is_empty(operand.shape.rank() - 1)) return std::nullopt;
  } else if (node.op->kind == ir::OpClass::reduce) {
    const std::vector<Index>& axes = node.attrs.integers("axes");
    if (std::none_of(axes.begin(), axes.end(), is_empty)) return std::nullopt;
    monoid = *node.op->monoid;
  } else {
    return std::nullopt;
  }
  const DType dtype = node.type.dtype;
  const tile::Number number = identity(monoid, dtype);
  const ir::LocationScope scope(graph, node.location);
  return is_float(dtype) ? ops::constant(graph, dtype, node.type.shape, number.f).id
                         : ops::constant_int(graph, dtype, node.type.shape, number.i).id;
}

}  // namespace tilewright::passes
