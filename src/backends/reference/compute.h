// Tile ops that touch no memory and no control: from operand values to the result's.
#pragma once

#include "backends/reference/values.h"

namespace tilewright::reference {

void compute(const tile::Kernel& kernel, const tile::Op& op, Values& values);

// Extents and steps of a reduction: result element (o, i) combines operand elements o·outer + j·stride + i.
struct AxisWalk {
  Index outer = 1;   // result rows
  Index length = 1;  // elements combined
  Index inner = 1;   // result columns
  Index at(Index o, Index j, Index i) const { return (o * length + j) * inner + i; }
};
AxisWalk walk_axis(const tile::TileType& type, int axis);

// Which operand element each result element of a broadcast is: row · row_step + column · column_step.
struct BroadcastWalk {
  Index rows = 1, columns = 1, row_step = 0, column_step = 0;
};
BroadcastWalk walk_broadcast(const tile::TileType& from, const tile::TileType& to);

}  // namespace tilewright::reference
