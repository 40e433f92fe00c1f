// The tiles of a back-to-back matmul on a matrix unit: as large as what a program holds in registers and on
// chip lets them be.
#pragma once

#include "passes/nest/dot_axes.h"
#include "passes/tiling/dot_problem.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// The target's unit that multiplies back-to-back matmuls; null where it has none.
const tile::MatrixUnit* b2b_unit(const tile::Target& target);

// Elements of a row of a unit's blocks.
inline Index panel_of(const tile::MatrixUnit& unit, DType dtype) {
  return unit.blocks.row_bytes / static_cast<Index>(size_bytes(dtype));
}

// The depth of a dot inside the loop; and whether one is walked in blocks of it.
Index depth_of(const LoopNest& nest, const Expr& inner_dot);
bool is_deep(const LoopNest& nest);

// Whether a unit wants the product of each block to be added by itself.
bool two_level_accumulation(const tile::MatrixUnit& unit, const Expr& dot);

// All for which the unit has room, those that are taken first. None: it has no room for the back-to-back
// matmul.
std::vector<DotTiles> b2b_tiles(const LoopNest& nest, const DotAxes& axes, const DotProblem& problem,
                                const tile::Target& target);

}  // namespace tilewright::passes
