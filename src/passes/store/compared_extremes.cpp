// The search for comparisons of a value with its own extreme, through views.
#include "passes/store/compared_extremes.h"

#include "ops/rows.h"
#include "passes/nest/loop_nest.h"
#include "passes/store/materialize_parts.h"

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

namespace {

bool compares(const ir::Node& n) {
  for (const ir::Op* op : {&ops::kEq, &ops::kNe, &ops::kLt, &ops::kLe, &ops::kGt, &ops::kGe})
    if (n.op == op) return true;
  return false;
}

// The value of which `id` is the largest or smallest, or -1.
NodeId extreme_of(const Graph& graph, NodeId id) {
  const ir::Node& n = graph.node(memory_of(graph, id));
  return n.op == &ops::kMax || n.op == &ops::kMin ? memory_of(graph, n.operands[0]) : -1;
}

}  // namespace

std::set<NodeId> compared_with_extremes(const Graph& graph) {
  std::set<NodeId> out;
  const std::vector<bool> live = graph.live();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    if (!live[static_cast<std::size_t>(id)] || !compares(n)) continue;
    for (std::size_t side : {0, 1}) {
      const NodeId of = extreme_of(graph, n.operands[side]);
      if (of < 0 || of != memory_of(graph, n.operands[1 - side])) continue;
      const ir::Node& value = graph.node(of);
      if (value.op->kind != OpClass::input && !is_inlined(value) && is_float(value.type.dtype))
        out.insert(of);
    }
  }
  return out;
}

}  // namespace tilewright::passes
