// Weights of views, and copies where one grows past the bound.
#include "passes/store/view_weights.h"

#include "ir/op.h"
#include "passes/nest/loop_nest.h"
#include "passes/store/materialize_parts.h"

#include <algorithm>

namespace tilewright::passes {

using ir::NodeId;
using ir::OpClass;

double ViewWeights::of(NodeId id) {
  while (std::ssize(known_) <= id) {
    const ir::Node& n = graph_.node(static_cast<NodeId>(known_.size()));
    known_.push_back(of(n, n.operands));
  }
  return known_[static_cast<std::size_t>(id)];
}

bool ViewWeights::is_memory(NodeId id) const { return !is_inlined(graph_.node(id)); }

double ViewWeights::of(const ir::Node& view, const std::vector<NodeId>& operands) {
  if (!is_inlined(view) || operands.empty()) return 1;
  double sum = 0;
  for (NodeId o : operands) sum += of(o);
  if (view.op->kind == OpClass::reshape) return is_memory(storage_node(graph_, operands[0])) ? 1 : 2 * sum;
  return view.op->kind == OpClass::pad ? sum + 1 : sum;
}

std::vector<NodeId> ViewWeights::bounded(const ir::Node& view, std::vector<NodeId> operands) {
  while (of(view, operands) > static_cast<double>(kMostLoads)) {
    const NodeId heaviest = *std::max_element(operands.begin(), operands.end(),
                                              [&](NodeId a, NodeId b) { return of(a) < of(b); });
    if (of(heaviest) == 1) break;  // many parts, all of them in memory
    std::replace(operands.begin(), operands.end(), heaviest, copy_of(graph_, heaviest));
  }
  return operands;
}

}  // namespace tilewright::passes
