// Which groups become one: pairs that are predicted to save time, the one that saves most by its floors
// first. Small graphs are fused twice, once with pairs that lose on the way, and what is predicted to be
// faster as a whole is taken.
#pragma once

#include "passes/fuse/fuse.h"
#include "passes/fuse/group_plans.h"

#include <set>

namespace tilewright::passes {

struct FusionInput {
  const ir::Graph& graph;
  const tile::Target& target;
  GroupPlans& plans;
  GroupForms& forms;  // of the graph
};

// The nodes in `again` are parts of every group that reads them, and never stored.
Fusion merge_groups(const FusionInput& input, const std::set<ir::NodeId>& again);

// A group a node, unpriced.
Fusion leave_apart(const FusionInput& input);

}  // namespace tilewright::passes
