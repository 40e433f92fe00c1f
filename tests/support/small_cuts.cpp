// Draws blocks of rows, columns and elements.
#include "support/small_cuts.h"

#include "support/choices.h"

namespace tilewright::test {

tile::Target with_small_cuts(const tile::Target& target, std::uint64_t seed) {
  if (seed % 3 != 0) return target;
  Random random(seed);
  tile::Target out = target;
  out.recomputed_bytes = 1;
  tile::RowCuts& rows = out.rows;
  const auto any_of = [&](std::initializer_list<Index> sizes) {
    return sizes.begin()[random.below(static_cast<Index>(sizes.size()))];
  };
  rows.elements = any_of({16, 64, 256});
  rows.turned_edge = any_of({4, 16});
  rows.picked_elements = any_of({2, 8});
  rows.loop_elements = any_of({4, 16, 64});
  rows.joined_elements = any_of({1, 16, 64});
  rows.columns = any_of({2, 8, 32});
  rows.column_rows = any_of({1, 4, 8});
  rows.strip_columns = any_of({2, 8});
  rows.shared_elements = static_cast<double>(any_of({1, 32}));
  if (random.chance(0.5)) rows.least_elements = 0;  // blocks are turned on chip, however small the tensor
  return out;
}

}  // namespace tilewright::test
