// Masks that compare loaded vectors, as the documents of queries and keys: which blocks they leave is data. A
// small kernel before a back-to-back matmul compares each key with the least and the most of each block of
// rows. It writes the first block of keys that any of them may need and the end of the last, so that the
// back-to-back matmul's loop has bounds as any other; and where the longest run of blocks lies that all of
// them see whole, which is walked without the masks. What the ids are sorted by does not matter: between the
// first two lies all that is needed, between the others nothing is left out.
#pragma once

#include "passes/masks/loop_range.h"
#include "passes/nest/condition.h"
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

struct BlockBounds {
  Condition needed;
  // Choices between what is computed and a constant: exprs of their conditions, and what these are where it
  // stays as it is. Only where the shape leaves them out for whole blocks.
  struct Mask {
    int condition = -1;
    bool keeps = true;
  };
  std::vector<Mask> masks;
  Condition broken = {.kind = Condition::Kind::always};  // some mask takes something out
  std::vector<int> variables;  // that the bounds differ along: the rows by block, the others each
  Index kinds() const { return masks.empty() ? 2 : 4; }  // of numbers: the ends of what is needed, of the run
};
Index blocks_along(const LoopSpace& space, int variable);

// None where positions and scalars decide, or where there are too few blocks to gain by it.
std::optional<BlockBounds> find_block_bounds(const ir::Graph& graph, const LoopNest& nest,
                                             const TileShape& shape);

// The temporary that holds them: numbers of blocks, i64 [kinds, …variables].
Index bounds_count(const LoopNest& nest, const BlockBounds& bounds, const TileShape& shape);
}  // namespace tilewright::passes
