// Copies where a view must become memory.
#include "passes/store/materialize.h"

#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/store/compared_extremes.h"
#include "passes/store/k_major_copy.h"
#include "passes/store/layout_propagation.h"
#include "passes/store/materialize_parts.h"
#include "passes/store/view_weights.h"
#include "passes/store/wide_concat.h"

#include <algorithm>
#include <set>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

namespace {

bool is_stored(const Graph& graph, NodeId id) {
  const ir::Node& n = graph.node(storage_node(graph, id));
  return n.op->kind == OpClass::input || !is_inlined(n);
}

// Rows apart in memory are no longer where other axes count them.
bool is_reshaped_with_pitch(const Graph& graph, NodeId id) {
  const NodeId stored = storage_node(graph, id);
  return stored != id && ops::has_pitch(graph.node(stored));
}

// A matmul walks strided views; pieces put together, padded or cut by divisions are made memory first.
bool reads_as_it_stands(const Graph& graph, const ir::Node& matmul, const std::vector<NodeId>& operands) {
  if (matmul.type.shape.size() == 0) return true;  // nothing is read
  return std::holds_alternative<LoopNest>(program_alone(alone(graph, operands), matmul));
}

}  // namespace

Graph materialize(const Graph& graph, const tile::Target& target) {
  Graph out(graph.name());
  std::vector<NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  ViewWeights weights(out);
  const std::vector<bool> live = graph.live();
  const std::set<NodeId> compared = compared_with_extremes(graph);
  auto to = [&](NodeId id) { return renamed[static_cast<std::size_t>(id)]; };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    if (n.op->kind == OpClass::input) {
      renamed[static_cast<std::size_t>(id)] = out.add_input(n.name, n.type);
      continue;
    }
    if (!live[static_cast<std::size_t>(id)]) continue;
    if (!n.operands.empty())
      if (const auto known = reduction_of_nothing(out, n, graph.type(n.operands[0]))) {
        renamed[static_cast<std::size_t>(id)] = *known;
        continue;
      }
    std::vector<NodeId> operands;
    operands.reserve(n.operands.size());
    for (NodeId o : n.operands) operands.push_back(to(o));
    if (n.op->kind == OpClass::concat) operands = few_parts(out, weights, n, std::move(operands));
    operands = weights.bounded(n, std::move(operands));
    const bool gathers = n.op->kind == OpClass::take || n.op->kind == OpClass::take_along ||
                         n.op->kind == OpClass::dynamic_slice || n.op->kind == OpClass::update_slice;
    if (gathers && (!is_stored(out, operands[0]) || is_reshaped_with_pitch(out, operands[0])))
      operands[0] = copy_of(out, operands[0]);
    const bool views =
        std::any_of(operands.begin(), operands.end(), [&](NodeId o) { return !is_stored(out, o); });
    if (n.op->kind == OpClass::matmul && views && !reads_as_it_stands(out, n, operands))
      for (NodeId& o : operands)
        if (!is_stored(out, o)) o = copy_of(out, o);
    if (n.op->kind == OpClass::matmul) operands = propagate_layout(out, n, std::move(operands));
    if (n.op->kind == OpClass::matmul) operands = copy_k_major(out, n, std::move(operands), target);
    NodeId added = out.add(*n.op, operands, n.attrs, n.location);
    if (compared.count(id)) added = copy_of(out, added);
    renamed[static_cast<std::size_t>(id)] = added;
  }
  std::vector<NodeId> outputs;
  std::set<NodeId> taken;
  for (NodeId o : graph.outputs()) {
    NodeId id = to(o);
    const ir::Node& stored = out.node(storage_node(out, id));
    const bool owned = !is_inlined(stored) && stored.op->kind != OpClass::input && !ops::has_pitch(stored);
    if (!owned) id = copy_of(out, id);
    taken.insert(storage_node(out, id));
    outputs.push_back(id);
  }
  out.set_outputs(outputs);
  return out;
}

}  // namespace tilewright::passes
