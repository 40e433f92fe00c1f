// A group's plan for a target: its loop nest in the form that the target runs best, how that is cut into
// tiles, and what it costs. Fusion compares what plans cost; emission writes the ones that were taken.
#pragma once

#include "passes/nest/tile_shape.h"
#include "passes/tiling/group_cost.h"

#include <vector>

namespace tilewright::passes {

struct TiledGroup {
  LoopNest nest;
  TileShape tiles;
  GroupCost cost;
};

// `nest` is as build_loop_nest() gives it.
TiledGroup tile_group(const ir::Graph& graph, LoopNest nest, const tile::Target& target);
// The same by each of the tiles that it may have (rank_tiles).
std::vector<TiledGroup> tile_group_by_all(const ir::Graph& graph, const LoopNest& nest,
                                          const tile::Target& target);

// Whether an output's additions are made in a wider temporary: its type has no atomic addition.
bool accumulates_wide(const ir::Graph& graph, const ProgramOutput& output);

}  // namespace tilewright::passes
