// Which part of a loop over a reduced variable a condition leaves, as bounds that each program computes
// before its loop. Interval arithmetic over the blocks of the other variables: nothing of the size of what is
// masked.
#pragma once

#include "passes/masks/bound.h"
#include "passes/nest/condition.h"
#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

// The reduced variable the innermost loop walks in blocks, or that the tile holds whole; -1: none.
int walked_variable(const LoopNest& nest, const TileShape& shape);

// A program's part of the space: `walked` is the variable that its loop walks; the others stand at their
// starts, or cover a block from there.
struct LoopSpace {
  LoopSpace(const LoopNest& p, const TileShape& s) : nest(p), shape(s), walked(walked_variable(p, s)) {}
  const LoopNest& nest;
  const TileShape& shape;
  int walked;
  Index block(int variable) const;
};

// Elements [lower, upper) of the walked variable; none where lower >= upper. May reach outside the extent.
struct LoopRange {
  Bound lower, upper;
  friend bool operator==(const LoopRange&, const LoopRange&) = default;
};

// Holds all elements for which the condition may hold somewhere in the block of the others.
LoopRange possible(const Condition& condition, const LoopSpace& space);

// The least of an expression in the block of the variables; the walked one is no part of it.
Bound least(const IndexExpr& expression, const LoopSpace& space);

// Whole blocks inside the extent that hold `range`.
LoopRange blocks_around(const LoopRange& range, const LoopSpace& space);

// The blocks in which these reductions and dots, which share a loop, may change.
LoopRange needed_blocks(const ir::Graph& graph, const LoopSpace& space, const std::vector<int>& reductions);

// The part of all blocks that the programs of the grid walk, from a sample of them; none where it depends on
// values that are loaded.
std::optional<double> walked_share(const LoopRange& blocks, const LoopSpace& space);

}  // namespace tilewright::passes
