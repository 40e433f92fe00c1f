// The walk of a group from its outputs back to memory: the first half of build_loop_nest().
#pragma once

#include "passes/nest/loop_nest.h"

#include <set>

namespace tilewright::passes {

// Thrown by the walk where a group has no one iteration space.
struct Stop {
  Refusal refusal;
};

// What reductions of a matmul's result make of a group: the matmul is computed in their loop, or they are
// epilogue reductions of its tiles (epilogue_reductions.h).
enum class Reductions : std::uint8_t { loops, epilogue_reductions };

// The group's program over the variables of its space, before they are split and merged.
LoopNest walk_group(const ir::Graph& graph, const Group& group, Reductions reductions);

// The last matmul of a group, and what the group makes of it.
struct LastMatmul {
  ir::NodeId id = -1;
  std::set<ir::NodeId> results;     // of the group, itself among them
  std::set<ir::NodeId> reductions;  // of more than one element, among these
};
LastMatmul last_matmul(const ir::Graph& graph, const Group& group);

}  // namespace tilewright::passes
