// Decides how a group's iteration space is cut into tiles for a target, before any kernel text exists.
#pragma once

#include "passes/nest/tile_shape.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

TileShape choose_tiles(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target);

}  // namespace tilewright::passes
