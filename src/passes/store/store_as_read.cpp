// Looks for a reshape behind a transpose on the way from a product to memory.
#include "passes/store/store_as_read.h"

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

// Of a view, the exchanged axes that a reshape nearest to the product may merge; -1 where there are none, or
// where they are of memory that nobody computes.
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
std::size_t loops_of(const Graph& graph, const ir::Node& matmul, const std::vector<NodeId>& operands) {
  constexpr std::size_t kNone = 1000;
  const auto program = program_of(graph, matmul, operands);
  return program ? program->extents.size() : kNone;
}

}  // namespace

std::vector<NodeId> store_as_read(Graph& graph, const ir::Node& matmul, std::vector<NodeId> operands) {
  if (matmul.type.shape.size() == 0) return operands;
  for (NodeId& operand : operands) {
    const NodeId exchanged = exchanged_before_reshape(graph, operand);
    if (exchanged < 0) continue;
    Graph trial = graph;
    const NodeId before = operand;
    const std::size_t loops = loops_of(trial, matmul, operands);
    operand = view_of(trial, before, exchanged, copy_of(trial, exchanged));
    if (loops_of(trial, matmul, operands) < loops)
      graph = std::move(trial);
    else
      operand = before;
  }
  return operands;
}

}  // namespace tilewright::passes
