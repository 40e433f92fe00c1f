// Attention of few queries over many keys: few programs, each with a long loop.
#pragma once

#include "passes/nest/tile_shape.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// A core alone has its share of the machine; what it reads alone comes faster, as if it had this much less of
// it.
inline constexpr double kAloneShare = 0.7;

// The shape, with the loop of a chain of dots and reductions shared among programs where the grid leaves
// cores or multiprocessors idle and merging the parts costs less than it gains.
TileShape split_chain(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target,
                      TileShape shape);

}  // namespace tilewright::passes
