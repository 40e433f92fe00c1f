// Walks the graph backwards, asking each op's vjp; gradients of a value used more than once are added up.
#include "passes/graph/differentiate.h"

#include "ops/functions.h"
#include "ops/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Value;

std::string place(const Node& node) {
  return node.location.empty() ? "" : fmt::format(" (at {})", node.location);
}

bool is_differentiable(const Graph& graph, NodeId id) { return is_float(graph.type(id).dtype); }

class Reverse {
 public:
  Reverse(const Graph& forward, const std::vector<int>& wrt) : graph_(forward), wrt_(wrt) {}

  Graph run() {
    check();
    find_dependents();
    const NodeId loss = graph_.outputs()[0];
    grads_.resize(static_cast<std::size_t>(loss) + 1);
    const Value seed = ops::full_like({&graph_, loss}, 1.0);
    grads_[static_cast<std::size_t>(loss)] = seed;
    for (NodeId id = loss; id >= 0; --id)
      if (grads_[static_cast<std::size_t>(id)]) step(id);
    std::vector<NodeId> outputs = graph_.outputs();
    for (int input : wrt_) outputs.push_back(gradient_of(input));
    graph_.set_outputs(outputs);
    return std::move(graph_);
  }

 private:
  NodeId input(int index) const { return graph_.inputs()[static_cast<std::size_t>(index)]; }

  void check() const {
    if (graph_.outputs().empty()) throw Error("differentiate: the graph has no output");
    const Node& loss = graph_.node(graph_.outputs()[0]);
    if (loss.type.shape.rank() != 0 || !is_float(loss.type.dtype))
      throw Error(fmt::format("differentiate: output 0 must be a float scalar, {} gives {}{}", loss.op->name,
                              to_string(loss.type), place(loss)));
    for (int index : wrt_) {
      if (index < 0 || index >= static_cast<int>(graph_.inputs().size()))
        throw Error(fmt::format("differentiate: there is no input {}", index));
      const Node& node = graph_.node(input(index));
      if (!is_float(node.type.dtype))
        throw Error(fmt::format("differentiate: input {} is {}, gradients need a float type{}", node.name,
                                to_string(node.type), place(node)));
    }
  }

  // depends_[n]: a float path leads from one of the inputs in question to n.
  void find_dependents() {
    depends_.assign(static_cast<std::size_t>(graph_.size()), false);
    for (int index : wrt_) depends_[static_cast<std::size_t>(input(index))] = true;
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (NodeId operand : graph_.node(id).operands)
        if (depends_[static_cast<std::size_t>(operand)] && is_differentiable(graph_, id))
          depends_[static_cast<std::size_t>(id)] = true;
  }

  // Hands the gradient of node `id` on to its operands.
  void step(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the vjp adds nodes
    if (node.op == &ir::input_op || !depends_[static_cast<std::size_t>(id)]) return;
    if (node.op->vjp == ir::no_gradient)
      throw Error(fmt::format("differentiate: {} has no gradient{}", node.op->name, place(node)));
    const ir::LocationScope scope(graph_, node.location);
    std::vector<Value> operands;
    operands.reserve(node.operands.size());
    for (NodeId operand : node.operands) operands.push_back({&graph_, operand});
    const auto grads =
        node.op->vjp(operands, node.attrs, {&graph_, id}, *grads_[static_cast<std::size_t>(id)]);
    TW_CHECK(grads.size() == operands.size(), "a vjp gives one entry per operand");
    for (std::size_t i = 0; i < grads.size(); ++i) {
      const auto at = static_cast<std::size_t>(node.operands[i]);
      if (!grads[i] || !depends_[at] || !is_differentiable(graph_, node.operands[i])) continue;
      TW_CHECK(grads[i]->type() == operands[i].type(), "a gradient has its operand's type");
      grads_[at] = grads_[at] ? *grads_[at] + *grads[i] : *grads[i];
    }
  }

  NodeId gradient_of(int index) {
    const NodeId id = input(index);
    if (static_cast<std::size_t>(id) < grads_.size() && grads_[static_cast<std::size_t>(id)])
      return grads_[static_cast<std::size_t>(id)]->id;
    return ops::full_like({&graph_, id}, 0.0).id;
  }

  Graph graph_;
  std::vector<int> wrt_;
  std::vector<bool> depends_;
  std::vector<std::optional<Value>> grads_;
};

}  // namespace

ir::Graph differentiate(const ir::Graph& forward, const std::vector<int>& wrt) {
  return Reverse(forward, wrt).run();
}

}  // namespace tilewright::passes
