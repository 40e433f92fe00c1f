// Where a loop's selects come out the same for all elements of their tiles.
#pragma once

#include <tilewright/tile/affine.h>

#include <map>
#include <optional>
#include <span>

namespace tilewright::passes {

// What is known of the bool tile `tile`, computed in a loop: where its tiles lie between the scalars `first`
// and `end`, which stand before the loop, all elements that are used equal `value`. Comparisons of loaded
// vectors do not say so themselves.
struct KnownBlocks {
  tile::ValueId tile = -1;
  bool value = true;
  tile::ValueId first = -1, end = -1;
};

// Iterations whose induction variable is at least each of `first` and at most each of `last`: there the keys
// of `replaced` equal their values, each the choice of a select that no constant stands for.
struct UnmaskedBlocks {
  std::map<tile::ValueId, tile::ValueId> replaced;  // none: no such iterations
  std::vector<tile::Affine> first, last;            // of what stands before the loop
  tile::Affine lower, upper;                        // of the loop
  Index step = 0;
  std::optional<Index> rounds;
};

// Finds them for a loop in the kernel's body; what loops inside it select stays as it is.
UnmaskedBlocks find_unmasked_blocks(const tile::Kernel& kernel, const tile::Op& loop,
                                    std::span<const KnownBlocks> known);

}  // namespace tilewright::passes
