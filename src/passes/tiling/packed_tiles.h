// The edges of a matmul's blocks where one thread packs them into its caches (tile::PackedDots).
#pragma once

#include "passes/tiling/dot_problem.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// Best first; the target's packed_dots are there.
std::vector<DotTiles> packed_tiles(const DotProblem& problem, const tile::Target& target);

}  // namespace tilewright::passes
