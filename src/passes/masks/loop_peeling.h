// Loops whose masks hold for whole blocks walk those blocks without the masks, and the others with them.
#pragma once

#include "passes/masks/unmasked_blocks.h"

namespace tilewright::passes {

// Cuts each loop that multiplies and selects by comparisons of positions, or by bool tiles of which it is
// known where all their elements are alike, in two: first the blocks before and after those in which every
// condition comes out the same, then these, without the conditions. Each program computes where they begin
// and end. What the iterations compute stays as it is, their order does not: sums round otherwise. The second
// loop never runs where the first one does not, which its upper bound says.
tile::Kernel peel_masked_loops(const tile::Kernel& kernel, std::span<const KnownBlocks> known = {});

}  // namespace tilewright::passes
