// Attention of few queries over many keys: few programs, each with a long loop.
#pragma once

#include "passes/nest/tile_shape.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// The shape, with the loop of a back-to-back matmul and reductions shared among programs where the grid
// leaves units idle and merging the parts costs less than it gains.
TileShape split_k_b2b(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target,
                      TileShape shape);

}  // namespace tilewright::passes
