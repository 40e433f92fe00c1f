// GroupMaker: what fusion knows of a graph's values: who reads whom through views, and what a group of some
// of them leaves in memory.
#pragma once

#include "passes/fuse/sorted.h"
#include "passes/nest/loop_nest.h"

#include <set>
#include <vector>

namespace tilewright::passes {

class GroupMaker {
 public:
  // The nodes in `again` are parts of every group that reads them, and never stored.
  GroupMaker(const ir::Graph& graph, const std::set<ir::NodeId>& again);

  // Whether a node computes a value of which groups are made.
  bool has(ir::NodeId id) const { return is_member_[at(id)]; }
  bool is_output(ir::NodeId id) const { return is_output_[at(id)]; }
  // The values that it reads, and those that read it; sorted.
  const std::vector<ir::NodeId>& sources(ir::NodeId id) const { return sources_[at(id)]; }
  const std::vector<ir::NodeId>& consumers(ir::NodeId id) const { return consumers_[at(id)]; }

  // The group of `nodes`, which are sorted, and of what they compute again.
  Group group_of(const std::vector<ir::NodeId>& nodes, bool epilogue_reductions) const;

 private:
  std::vector<bool> is_member_, is_output_;
  std::vector<std::vector<ir::NodeId>> sources_, consumers_;
  std::vector<std::vector<ir::NodeId>> again_behind_;  // what a node's group computes again for it; sorted
  mutable std::vector<int> made_in_;                   // the last group made with a node
  mutable int made_ = 0;
};

}  // namespace tilewright::passes
