// Loops whose masks hold for whole blocks walk those blocks without the masks, and the others with them.
#pragma once

#include <tilewright/tile/kernel.h>

namespace tilewright::passes {

// Cuts each loop that multiplies and selects by comparisons of positions into up to three: before, within and
// after the blocks in which every comparison comes out the same. Each program computes where these begin and
// end. The iterations, their order and what they compute stay as they are.
tile::Kernel split_masked_loops(const tile::Kernel& kernel);

}  // namespace tilewright::passes
