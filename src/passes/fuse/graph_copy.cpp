// Writing nodes in the order in which they are needed.
#include "passes/fuse/graph_copy.h"

namespace tilewright::passes {

using ir::NodeId;

GraphCopy::GraphCopy(const ir::Graph& graph)
    : graph_(graph), out_(graph.name()), renamed_(static_cast<std::size_t>(graph.size()), -1) {}

std::optional<ir::Graph> GraphCopy::run() {
  for (NodeId id : graph_.inputs()) renamed(id) = out_.add_input(graph_.node(id).name, graph_.type(id));
  const std::vector<bool> live = graph_.live();
  for (NodeId id = 0; id < graph_.size(); ++id)
    if (live[static_cast<std::size_t>(id)] && !is_left_out(id) && !add(id)) return std::nullopt;
  std::vector<NodeId> outputs;
  for (NodeId o : graph_.outputs()) outputs.push_back(renamed(o));
  out_.set_outputs(outputs);
  return std::move(out_);
}

bool GraphCopy::add(NodeId id) {
  if (renamed(id) >= 0) return true;
  if (is_written_together(id)) {
    if (writing_) return false;
    writing_ = true;
    const bool written = write_together();
    writing_ = false;
    return written;
  }
  const ir::Node& n = graph_.node(id);
  std::vector<NodeId> operands;
  operands.reserve(n.operands.size());
  for (NodeId o : n.operands) {
    if (!add(o)) return false;
    operands.push_back(renamed(o));
  }
  renamed(id) = out_.add(*n.op, operands, n.attrs, n.location);
  return true;
}

}  // namespace tilewright::passes
