// Decides how a group's iteration space is cut into tiles for a target, before any kernel text exists.
#pragma once

#include "passes/tile_emitter.h"

namespace tilewright::passes {

TileShape choose_tiles(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target);

// Bytes a group must move (each buffer element it touches once) and FLOPs it does; what fusion compares.
struct GroupCost {
  double bytes = 0;
  double flops = 0;  // apart from the dot's
  double dot_flops = 0;
  bool dot_on_matrix_units = false;
  double seconds(const tile::Target& target) const;
};
// The target says how often what a dot's operands are made of is computed again.
GroupCost group_cost(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target);

}  // namespace tilewright::passes
