// Two loops of which one carries out the other's rounds without its masks (passes/masks/loop_peeling.h): one
// body serves both, with the masks under a condition.
#pragma once

#include <tilewright/tile/kernel.h>

#include <map>
#include <optional>
#include <set>

namespace tilewright::cuda {

struct KnownMasks {
  // The operand that an op of the masked loop equals in every round of the other loop: what a mask
  // leaves, and the index from which masked rounds step over those of the other loop.
  std::map<const tile::Op*, int> left = {};
  std::set<const tile::Op*> loads = {};  // tiles that masks alone are made of
};

// The masks by which two loops differ; none if they differ in more.
std::optional<KnownMasks> known_masks(const tile::Kernel& kernel, const tile::Op& masked,
                                      const tile::Op& whole);

}  // namespace tilewright::cuda
