#include "passes/graph/made_of.h"

#include <set>

namespace tilewright::passes {

bool is_made_of(const ir::Graph& graph, ir::NodeId value, std::size_t most,
                const std::function<Look(const ir::Node&)>& look) {
  std::set<ir::NodeId> seen;
  std::vector<ir::NodeId> left{value};
  while (!left.empty() && seen.size() < most) {
    const ir::NodeId id = left.back();
    left.pop_back();
    if (!seen.insert(id).second) continue;
    const ir::Node& n = graph.node(id);
    const Look what = look(n);
    if (what == Look::found) return true;
    if (what == Look::behind) left.insert(left.end(), n.operands.begin(), n.operands.end());
  }
  return false;
}

}  // namespace tilewright::passes
