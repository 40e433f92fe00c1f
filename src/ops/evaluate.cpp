// The whole-graph oracle: every live node by its row's eval, values dropped after their last use.
#include "ops/ops.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using ir::HostTensor;
using ir::NodeId;

void check_input(const ir::Node& node, const HostTensor& tensor) {
  const auto n = static_cast<std::size_t>(node.type.shape.size());
  const std::size_t held = is_float(node.type.dtype) ? tensor.f.size() : tensor.i.size();
  if (tensor.type != node.type || held != n)
    throw Error(fmt::format("evaluate: input {} is {}, the graph wants {}", node.name, to_string(tensor.type),
                            to_string(node.type)));
}

// The last node that reads each value; outputs are kept to the end.
std::vector<NodeId> last_uses(const ir::Graph& graph, const std::vector<bool>& live) {
  std::vector<NodeId> last(static_cast<std::size_t>(graph.size()), -1);
  for (NodeId id = 0; id < graph.size(); ++id)
    if (live[static_cast<std::size_t>(id)])
      for (NodeId operand : graph.node(id).operands) last[static_cast<std::size_t>(operand)] = id;
  for (NodeId id : graph.outputs()) last[static_cast<std::size_t>(id)] = graph.size();
  return last;
}

}  // namespace

std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const HostTensor> inputs) {
  return evaluate(graph, inputs, {});
}

std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const HostTensor> inputs,
                                 const Observer& after) {
  if (inputs.size() != graph.inputs().size())
    throw Error(fmt::format("evaluate: {} inputs for a graph of {}", inputs.size(), graph.inputs().size()));
  const std::vector<bool> live = graph.live();
  const std::vector<NodeId> last = last_uses(graph, live);
  std::vector<HostTensor> computed(static_cast<std::size_t>(graph.size()));
  std::vector<const HostTensor*> values(computed.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const NodeId id = graph.inputs()[i];
    check_input(graph.node(id), inputs[i]);
    const auto at = static_cast<std::size_t>(id);
    values[at] = &inputs[i];
    if (!after) continue;
    computed[at] = inputs[i];
    after(graph.node(id), computed[at]);
    values[at] = &computed[at];
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto at = static_cast<std::size_t>(id);
    if (!live[at] || values[at] != nullptr) continue;
    const ir::Node& node = graph.node(id);
    std::vector<const HostTensor*> operands;
    for (NodeId operand : node.operands) operands.push_back(values[static_cast<std::size_t>(operand)]);
    computed[at] = node.op->eval(operands, node.attrs, node.type);
    if (after) after(node, computed[at]);
    values[at] = &computed[at];
    for (NodeId operand : node.operands)
      if (last[static_cast<std::size_t>(operand)] == id) computed[static_cast<std::size_t>(operand)] = {};
  }
  std::vector<HostTensor> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(*values[static_cast<std::size_t>(id)]);
  return outputs;
}

}  // namespace tilewright::ops
