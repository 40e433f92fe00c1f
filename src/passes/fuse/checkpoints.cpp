// Backwards from what comes out, then forwards from what goes in.
#include "passes/fuse/checkpoints.h"

#include "ops/checkpoint.h"

#include <map>

namespace tilewright::passes {

using ir::Node;
using ir::NodeId;

namespace {

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

// goes_out[n]: n goes into what comes out of a call, behind the call's beginning. What only gradients read
// does not.
std::vector<bool> going_out(const ir::Graph& graph) {
  std::vector<bool> goes_out(at(graph.size()), false);
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    const Node& n = graph.node(id);
    if (n.op == &ops::kCheckpoint ? !ops::is_edge(n, ops::Edge::out) : !goes_out[at(id)]) continue;
    for (const NodeId o : n.operands) goes_out[at(o)] = graph.node(o).op != &ops::kCheckpoint;
  }
  return goes_out;
}

}  // namespace

std::vector<int> checkpointed_calls(const ir::Graph& graph) {
  const std::vector<bool> goes_out = going_out(graph);
  // Calls of several derivatives may have one number: those that share no value are apart.
  std::vector<NodeId> same(at(graph.size()), -1);
  const auto first_of = [&](NodeId id) {
    while (same[at(id)] != id) id = same[at(id)];
    return id;
  };
  bool any = false;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (ops::is_edge(n, ops::Edge::in)) {
      same[at(id)] = id;
      any = true;
    } else if (goes_out[at(id)] && n.op != &ops::kCheckpoint) {
      for (const NodeId o : n.operands) {
        if (same[at(o)] < 0) continue;
        const NodeId theirs = first_of(o);
        if (same[at(id)] < 0) same[at(id)] = theirs;
        const NodeId own = first_of(id);
        same[at(std::max(own, theirs))] = std::min(own, theirs);
      }
    }
  }
  if (!any) return {};
  std::vector<int> calls(same.size(), 0);
  std::map<NodeId, int> numbers;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (same[at(id)] >= 0 && graph.node(id).op != &ops::kCheckpoint)
      calls[at(id)] = numbers.try_emplace(first_of(id), static_cast<int>(numbers.size()) + 1).first->second;
  return calls;
}

}  // namespace tilewright::passes
