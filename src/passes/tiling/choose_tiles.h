// Decides how a group's iteration space is cut into tiles for a target, before any kernel text exists.
#pragma once

#include "passes/nest/tile_shape.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// The tiles that the nest may have, best first where the target has no price for the kernel: several of a
// product, one of all else.
std::vector<TileShape> rank_tiles(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target);
// The first of them.
TileShape choose_tiles(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target);

}  // namespace tilewright::passes
