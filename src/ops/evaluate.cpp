// The whole-graph oracle: every live node by its row's eval, values dropped after their last use.
#include "ops/elementwise_group.h"
#include "ops/ops.h"

#include <fmt/format.h>

#include <map>

namespace tilewright::ops {

namespace {

using ir::HostTensor;
using ir::NodeId;

// Values smaller than this are computed one op at a time.
constexpr Index kGroupFrom = 1 << 14;

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

void check_input(const ir::Node& node, const HostTensor& tensor) {
  const auto n = static_cast<std::size_t>(node.type.shape.size());
  const std::size_t held = is_float(node.type.dtype) ? tensor.f.size() : tensor.i.size();
  if (tensor.type != node.type || held != n)
    throw Error(fmt::format("evaluate: input {} is {}, the graph wants {}", node.name, to_string(tensor.type),
                            to_string(node.type)));
}

class Evaluation {
 public:
  Evaluation(const ir::Graph& graph, std::span<const HostTensor> inputs, const Observer& after)
      : graph_(graph), after_(after), live_(graph.live()) {
    if (inputs.size() != graph.inputs().size())
      throw Error(fmt::format("evaluate: {} inputs for a graph of {}", inputs.size(), graph.inputs().size()));
    count_uses();
    computed_.resize(at(graph.size()));
    values_.resize(at(graph.size()), nullptr);
    pending_in_.resize(at(graph.size()), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) take_input(graph.inputs()[i], inputs[i]);
  }

  std::vector<HostTensor> run() {
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live_[at(id)] && values_[at(id)] == nullptr) visit(id);
    for (NodeId id : graph_.outputs()) flush_of(id);
    std::vector<HostTensor> outputs;
    outputs.reserve(graph_.outputs().size());
    for (NodeId id : graph_.outputs()) {
      const bool last = --uses_left_[at(id)] == 0 && values_[at(id)] == &computed_[at(id)];
      if (last)
        outputs.push_back(std::move(computed_[at(id)]));
      else
        outputs.push_back(*values_[at(id)]);
    }
    return outputs;
  }

 private:
  // An output counts as a use, so that its value is kept to the end.
  void count_uses() {
    uses_left_.assign(at(graph_.size()), 0);
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (live_[at(id)])
        for (NodeId operand : graph_.node(id).operands) ++uses_left_[at(operand)];
    for (NodeId id : graph_.outputs()) ++uses_left_[at(id)];
  }

  void take_input(NodeId id, const HostTensor& tensor) {
    check_input(graph_.node(id), tensor);
    values_[at(id)] = &tensor;
    if (!after_) return;
    computed_[at(id)] = tensor;
    after_(graph_.node(id), computed_[at(id)]);
    values_[at(id)] = &computed_[at(id)];
  }

  // Large elementwise nodes wait in the group of their size until something else reads them.
  void visit(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const Index count = node.type.shape.size();
    const bool waits = !after_ && count >= kGroupFrom && is_elementwise(*node.op);
    for (NodeId operand : node.operands)
      if (!waits || graph_.type(operand).shape.size() != count) flush_of(operand);
    if (waits) {
      ElementwiseGroup& group = groups_[count];
      group.count = count;
      group.nodes.push_back(id);
      pending_in_[at(id)] = &group;
      return;
    }
    std::vector<const HostTensor*> operands;
    operands.reserve(node.operands.size());
    for (NodeId operand : node.operands) operands.push_back(values_[at(operand)]);
    store(id, node.op->eval(operands, node.attrs, node.type));
    if (after_) after_(node, computed_[at(id)]);
    release_operands(node);
  }

  void store(NodeId id, HostTensor value) {
    computed_[at(id)] = std::move(value);
    values_[at(id)] = &computed_[at(id)];
  }

  void release_operands(const ir::Node& node) {
    for (NodeId operand : node.operands)
      if (--uses_left_[at(operand)] == 0) computed_[at(operand)] = {};
  }

  void flush_of(NodeId id) {
    if (pending_in_[at(id)] == nullptr) return;
    ElementwiseGroup group = std::move(*pending_in_[at(id)]);
    *pending_in_[at(id)] = {};
    std::vector<int> uses_inside(at(graph_.size()), 0);
    for (NodeId member : group.nodes) {
      pending_in_[at(member)] = nullptr;
      for (NodeId operand : graph_.node(member).operands) ++uses_inside[at(operand)];
    }
    for (NodeId member : group.nodes)
      if (uses_left_[at(member)] > uses_inside[at(member)]) group.stored.push_back(member);
    std::vector<HostTensor> results;
    evaluate_group(
        graph_, group, [&](NodeId outside) -> const HostTensor& { return *values_[at(outside)]; }, results);
    for (std::size_t i = 0; i < results.size(); ++i) store(group.stored[i], std::move(results[i]));
    for (NodeId member : group.nodes) release_operands(graph_.node(member));
  }

  const ir::Graph& graph_;
  const Observer& after_;
  std::vector<bool> live_;
  std::vector<int> uses_left_;
  std::vector<HostTensor> computed_;
  std::vector<const HostTensor*> values_;
  std::map<Index, ElementwiseGroup> groups_;  // by element count
  std::vector<ElementwiseGroup*> pending_in_;
};

}  // namespace

std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const HostTensor> inputs) {
  return evaluate(graph, inputs, Observer());
}

std::vector<HostTensor> evaluate(const ir::Graph& graph, std::span<const HostTensor> inputs,
                                 const Observer& after) {
  return Evaluation(graph, inputs, after).run();
}

}  // namespace tilewright::ops
