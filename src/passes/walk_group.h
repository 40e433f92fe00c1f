// The walk of a group from its outputs back to memory: the first half of build_program().
#pragma once

#include "passes/group_program.h"

namespace tilewright::passes {

// Thrown by the walk where a group has no one iteration space.
struct Stop {
  Refusal refusal;
};

// The group's program over the variables of its space, before they are split and merged.
GroupProgram walk_group(const ir::Graph& graph, const Group& group);

}  // namespace tilewright::passes
