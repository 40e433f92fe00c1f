// Masks that compare loaded vectors, as the documents of queries and keys: which blocks they leave is data. A
// small kernel before a chain compares each key with the least and the most of each block of rows and writes
// the first key that any of them may need and the end of the last, so that the chain's loop has bounds as any
// other. What the ids are sorted by does not matter: between the two lies all that is needed.
#pragma once

#include "passes/condition.h"
#include "passes/emit_state.h"
#include "passes/loop_range.h"

namespace tilewright::passes {

struct BlockBounds {
  Condition needed;
  std::vector<int> variables;  // that the bounds differ along: the rows by block, the others each
};

// None where positions and scalars decide, or where there are too few blocks to gain by it.
std::optional<BlockBounds> find_block_bounds(const ir::Graph& graph, const GroupProgram& program,
                                             const TileShape& shape);

// Of the temporary that holds them: i64 [2, …variables].
Index bounds_count(const GroupProgram& program, const BlockBounds& bounds, const TileShape& shape);

// Writes them to temporary shape.block_bounds.
EmittedKernel emit_block_bounds(const ir::Graph& graph, const GroupProgram& program,
                                const BlockBounds& bounds, const TileShape& shape, const std::string& name,
                                const std::vector<Temporary>& temporaries);

// Those of the program that is being written: whole blocks, inside the extent.
std::pair<tile::Value, tile::Value> load_block_bounds(EmitState& state, const BlockBounds& bounds,
                                                      const TileShape& shape);

}  // namespace tilewright::passes
