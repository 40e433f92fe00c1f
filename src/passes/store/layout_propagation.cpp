// Looks for a reshape behind a transpose on the way from a product to memory.
#include "passes/store/layout_propagation.h"

#include "passes/store/materialize_parts.h"

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

// The exchange of axes behind `view` that a reshape nearest to the product may merge; -1 where there is none,
// or where it is of memory that nobody computes.
NodeId exchanged_before_reshape(const Graph& graph, NodeId view) {
  if (!is_computed(graph.node(memory_of(graph, view)))) return -1;
  NodeId before = -1;
  for (NodeId id = view; is_inlined(graph.node(id)); id = graph.node(id).operands[0]) {
    if (graph.node(id).op->kind == OpClass::reshape && before < 0) before = graph.node(id).operands[0];
    if (graph.node(id).op->kind == OpClass::transpose && before >= 0) return before;
  }
  return -1;
}

// More loops than any product has, where it cannot be walked.
std::size_t loops_of(const ProductAlone& product, const ir::Node& matmul) {
  constexpr std::size_t kNone = 1000;
  const auto nest = program_of(product, matmul);
  return nest ? nest->extents.size() : kNone;
}

// Whether the product has fewer loops if its operand `side` is read from a copy of `exchanged`.
bool copy_merges_loops(const Graph& graph, const ir::Node& matmul, const std::vector<NodeId>& operands,
                       std::size_t side, NodeId exchanged) {
  ProductAlone product = alone(graph, operands);
  const std::size_t loops = loops_of(product, matmul);
  const NodeId from = product.known.at(exchanged);
  product.operands[side] = view_of(product.graph, product.operands[side], from, copy_of(product.graph, from));
  return loops_of(product, matmul) < loops;
}

}  // namespace

std::vector<NodeId> propagate_layout(Graph& graph, const ir::Node& matmul, std::vector<NodeId> operands) {
  if (matmul.type.shape.size() == 0) return operands;
  for (std::size_t side : {0, 1}) {
    const NodeId exchanged = exchanged_before_reshape(graph, operands[side]);
    if (exchanged >= 0 && copy_merges_loops(graph, matmul, operands, side, exchanged))
      operands[side] = view_of(graph, operands[side], exchanged, copy_of(graph, exchanged));
  }
  return operands;
}

}  // namespace tilewright::passes
