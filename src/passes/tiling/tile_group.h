// A group's plan for a target: its loop nest in the form that the target runs best, how that is cut into
// tiles, and what it costs. Fusion compares what plans cost; emission writes the ones that were taken.
#pragma once

#include "passes/nest/tile_shape.h"
#include "passes/tiling/group_cost.h"

namespace tilewright::passes {

struct TiledGroup {
  GroupProgram program;
  TileShape tiles;
  GroupCost cost;
};

// `program` is as build_program() gives it.
TiledGroup tile_group(const ir::Graph& graph, GroupProgram program, const tile::Target& target);

// Whether some axis has no elements: no kernel runs.
bool is_empty(const GroupProgram& program);

// Whether an output's additions are made in a wider temporary: its type has no atomic addition.
bool adds_up_wide(const ir::Graph& graph, const ProgramOutput& output);

}  // namespace tilewright::passes
