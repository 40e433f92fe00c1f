// Lists of who reads whom, made once for a graph, and groups made with them.
#include "passes/fuse/group_maker.h"

#include "passes/fuse/recompute.h"

#include <algorithm>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::OpClass;

GroupMaker::GroupMaker(const Graph& graph, const std::set<NodeId>& again) {
  const std::size_t nodes = at(graph.size());
  is_member_.assign(nodes, false);
  is_output_.assign(nodes, false);
  made_in_.assign(nodes, 0);
  sources_.resize(nodes), consumers_.resize(nodes), again_behind_.resize(nodes);
  for (NodeId o : graph.outputs()) is_output_[at(storage_node(graph, o))] = true;
  const std::vector<bool> live = graph.live();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    const bool computes = n.op->kind != OpClass::input && !is_inlined(n) && n.type.shape.size() != 0;
    if (!live[at(id)] || !computes || again.count(id)) continue;
    is_member_[at(id)] = true;
    const std::set<NodeId> from = sources_of(graph, id, again);
    sources_[at(id)].assign(from.begin(), from.end());
    for (NodeId s : from) consumers_[at(s)].push_back(id);
    if (again.empty()) continue;
    std::set<NodeId> with = {id};
    add_recomputed(graph, again, with);
    with.erase(id);
    again_behind_[at(id)].assign(with.begin(), with.end());
  }
}

Group GroupMaker::group_of(const std::vector<NodeId>& nodes, bool epilogue_reductions) const {
  Group g{.nodes = nodes, .epilogue_reductions = epilogue_reductions};
  ++made_;
  for (NodeId id : nodes) {
    made_in_[at(id)] = made_;
    if (!again_behind_[at(id)].empty()) g.nodes = joined(g.nodes, again_behind_[at(id)]);
  }
  for (NodeId id : nodes) {
    const std::vector<NodeId>& readers = consumers_[at(id)];
    if (is_output_[at(id)] ||
        std::any_of(readers.begin(), readers.end(), [&](NodeId c) { return made_in_[at(c)] != made_; }))
      g.outputs.push_back(id);
  }
  return g;
}

}  // namespace tilewright::passes
