// A copy of a graph, node by node, in which a function may write others.
#include "passes/graph/replace_nodes.h"

#include "ir/op.h"

#include <algorithm>

namespace tilewright::passes {

ir::Graph replace_nodes(const ir::Graph& graph, const NodeReplacement& replacement) {
  ir::Graph out(graph.name());
  std::vector<ir::NodeId> renamed(static_cast<std::size_t>(graph.size()), -1);
  const auto all_renamed = [&](const std::vector<ir::NodeId>& nodes) {
    std::vector<ir::NodeId> ids;
    ids.reserve(nodes.size());
    for (ir::NodeId id : nodes) ids.push_back(renamed[static_cast<std::size_t>(id)]);
    return ids;
  };
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    ir::NodeId& to = renamed[static_cast<std::size_t>(id)];
    if (n.op->kind == ir::OpClass::input) {
      to = out.add_input(n.name, n.type);
      continue;
    }
    const std::vector<ir::NodeId> operands = all_renamed(n.operands);
    std::vector<ir::Value> values;
    values.reserve(operands.size());
    for (ir::NodeId operand : operands) values.push_back({&out, operand});
    const ir::LocationScope scope(out, n.location);
    const std::optional<ir::Value> other = replacement(n, values);
    to = other ? other->id : out.add(*n.op, operands, n.attrs, n.location);
  }
  out.set_outputs(all_renamed(graph.outputs()));
  return out;
}

ir::Graph replace_nodes(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& is_one,
                        const std::function<ir::Value(const ir::Node&, ir::Value)>& replacement) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_one)) return graph;
  return replace_nodes(graph, [&](const ir::Node& n, const std::vector<ir::Value>& operands) {
    return is_one(n) ? std::optional(replacement(n, operands[0])) : std::nullopt;
  });
}

}  // namespace tilewright::passes
