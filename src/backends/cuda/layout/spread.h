// The spread over threads of what an element loop touches, and how values move between spreads through
// shared memory.
#pragma once

#include "backends/cuda/layout/layout.h"

namespace tilewright::cuda {

// The part of a loop's frame over which a value is spread, by the axes of the loop that its own axes walk.
Part spread_of(const printer::ElementLoop& loop, ThreadLayout layout, const std::vector<int>& axes);

// The layout of what a loop reduces along an axis of side 0 (down the rows) or 1 (along the columns).
ThreadLayout layout_of_result(ThreadLayout loop, int side);

// What is reduced down the columns of a loop meets in shared memory. In quads: the four threads of an
// accumulator's row exchange whole vectors.
bool reduces_in_quads(const TileFrame& frame, Part part);
Index column_exchange_bytes(const TileFrame& frame, Part part, Index threads, Index state_bytes);
// Bytes that warps hand on to one another in a scan along an axis of side 0 or 1.
Index scan_bytes(const TileFrame& frame, Part part, int side, DType dtype);
// Parts of a row's reduction that meet in shared memory: warps of all blocks; 1 where lanes alone do.
int row_parts(const TileFrame& frame);

// Rows of a tile on its way through shared memory are `pitch` elements apart; behind elements that are sorted
// lie their positions, from byte `positions` on.
struct RelayoutStage {
  Index pitch = 1, bytes = 0, positions = 0;
};
RelayoutStage relayout_stage(const tile::Kernel& kernel, const tile::Op& op);

// A thread's own dot: both operands in shared memory. Turned: a row of results that is spread like a tile's
// rows, or a column like its columns, is the transposed product: operands change places, each laid out the
// other way round.
struct DotStage {
  bool transposed = false;
  tile::ValueId a = -1, b = -1;
  Index m = 0, n = 0, k = 0;
  Index pitch_a = 0, pitch_b = 0, offset_b = 0, bytes = 0;
};
DotStage dot_stage(const tile::Kernel& kernel, const Layouts& layouts, ThreadLayout result,
                   const tile::Op& dot);

}  // namespace tilewright::cuda
