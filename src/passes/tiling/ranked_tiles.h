// RankedTiles: tiles with the time that a model gives them, and the few of them that are worth measuring.
#pragma once

#include "passes/tiling/dot_problem.h"

#include <vector>

namespace tilewright::passes {

struct RankedTiles {
  DotTiles tiles;
  double cost = 0;
};

// The fastest first; of equals, the first.
std::vector<DotTiles> best_first(const std::vector<RankedTiles>& all);
// The same, with at most two numbers of splits for each edge, so that what is measured differs in kind.
std::vector<DotTiles> best_of_each(std::vector<RankedTiles> all);

}  // namespace tilewright::passes
