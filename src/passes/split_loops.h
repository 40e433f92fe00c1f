// Loops whose masks hold for whole blocks walk those blocks without the masks, and the others with them.
#pragma once

#include <tilewright/tile/kernel.h>

namespace tilewright::passes {

// Cuts each loop that multiplies and selects by comparisons of positions in two: first the blocks before and
// after those in which every comparison comes out the same, then these, without the comparisons. Each program
// computes where they begin and end. What the iterations compute stays as it is, their order does not: sums
// round otherwise. The second loop never runs where the first one does not, which its upper bound says.
tile::Kernel split_masked_loops(const tile::Kernel& kernel);

}  // namespace tilewright::passes
