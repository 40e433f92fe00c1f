// Targets that cut small work as a device's own numbers cut large work.
#pragma once

#include <tilewright/tile/target.h>

#include <cstdint>

namespace tilewright::test {

// The target, or for every third seed one with blocks of a few elements: a random graph's sums are then
// shared among programs, walked in several rounds, and have more than one block in each direction, as those
// of large tensors are. Any numbers are legal there (tile/program_cuts.h); they change what is fast, never a
// result.
tile::Target with_small_cuts(const tile::Target& target, std::uint64_t seed);

}  // namespace tilewright::test
