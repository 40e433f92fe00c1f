// Programs that stand for a whole grid where there are too many to walk each.
#pragma once

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::tile {

// The places in a grid, fastest axis first, of one program of each of `count` equal parts of the programs.
// The parts' programs stand at places that the golden ratio spreads evenly: at one place of every part, all
// would share what repeats with the parts' length, as the rows of a causal mask do. count: 1 to the grid's
// programs, of which there is one at least.
std::vector<std::vector<Index>> sampled_programs(const std::vector<Index>& grid, Index count);

}  // namespace tilewright::tile
