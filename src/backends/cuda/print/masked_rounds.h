// Two loops of which one carries out the other's rounds without its masks (passes/masks/loop_peeling.h): one
// body serves both, with the masks under a condition.
#pragma once

#include <tilewright/tile/kernel.h>

#include <map>
#include <optional>

namespace tilewright::cuda {

// For ops of the masked loop, the operand that each equals in every round of the other loop.
using KnownMasks = std::map<const tile::Op*, int>;

// The masks by which two loops differ. None if they differ in more, or if a mask is made of what is loaded:
// the rounds without it would load, too.
std::optional<KnownMasks> known_masks(const tile::Op& masked, const tile::Op& whole);

}  // namespace tilewright::cuda
