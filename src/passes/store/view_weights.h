// How much code one element of a view is: pieces put together are all looked for in each of its readers, and
// a view of such views has the product. What would grow past a bound is copied into memory on the way.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::passes {

class ViewWeights {
 public:
  // For a graph that grows by the nodes it is asked about, and by copies.
  explicit ViewWeights(ir::Graph& graph) : graph_(graph) {}

  // The operands of a view that is about to be added: in memory where it would be too heavy else.
  std::vector<ir::NodeId> bounded(const ir::Node& view, std::vector<ir::NodeId> operands);

 private:
  bool is_memory(ir::NodeId id) const;
  // 1 for what is in memory, or a constant.
  double of(ir::NodeId id);
  double of(const ir::Node& view, const std::vector<ir::NodeId>& operands);

  ir::Graph& graph_;
  std::vector<double> known_;  // beside the graph's nodes
};

}  // namespace tilewright::passes
