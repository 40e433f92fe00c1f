// Decides how a group's iteration space is cut into tiles for a target, before any kernel text exists.
#pragma once

#include "passes/tile_emitter.h"

namespace tilewright::passes {

TileShape choose_tiles(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target);

// Bytes a group must move (each buffer element it touches once) and FLOPs it does; what fusion compares.
struct GroupCost {
  double bytes = 0;
  double flops = 0;
  double seconds(const tile::Target& target) const;
};
GroupCost group_cost(const ir::Graph& graph, const GroupProgram& program);

}  // namespace tilewright::passes
