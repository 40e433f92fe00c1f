#include "passes/store/materialize_parts.h"

#include "ops/rows.h"

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;

std::optional<GroupProgram> program_of(const Graph& graph, const ir::Node& matmul,
                                       const std::vector<NodeId>& operands) {
  Graph trial = graph;
  const NodeId id = trial.add(*matmul.op, operands, matmul.attrs, matmul.location);
  auto program = build_program(trial, {{id}, {id}});
  if (const auto* found = std::get_if<GroupProgram>(&program); found && found->dot() >= 0) return *found;
  return std::nullopt;
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

}  // namespace tilewright::passes
