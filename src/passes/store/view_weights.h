// How much code one element of a view is: pieces put together are all looked for in each of its readers, and
// a view of such views has the product. What would grow past a bound is copied into memory on the way.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::passes {

// Loads of one element: parts of a concat, however they are nested. Clang takes 16 ms for each of 60 parts of
// one kernel, less for each of fewer, and a value that grows by a part at every step is looked for in all of
// them at every step (docs/notes/2026-11-22-compile-time.md). A reshape of axes that do not merge divides the
// position that the one before it found and counts twice: four of them are as long.
inline constexpr std::size_t kMostLoads = 16;

class ViewWeights {
 public:
  // `graph` may grow: by the nodes that are asked about, and by copies.
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
