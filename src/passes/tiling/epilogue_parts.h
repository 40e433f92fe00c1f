// What tiles leave of epilogue reductions: parts, and the programs that finish them.
#pragma once

#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

// Programs that have a part of each result: 1 where a tile holds all that is reduced.
Index epilogue_parts(const LoopNest& nest, const TileShape& shape, int epilogue_reduction);

// Elements of all parts of an epilogue reduction.
Index elements_of_parts(const LoopNest& nest, const TileShape& shape, int epilogue_reduction);

// The epilogue reductions that have several parts, in order. The parts of the first lie in the shape's
// temporary `epilogue reductions`, those of the others in the following ones, laid out [parts][parallel
// variables that are not reduced].
std::vector<int> epilogue_reductions_in_parts(const LoopNest& nest, const TileShape& shape);
bool is_in_parts(const LoopNest& nest, const TileShape& shape, const ProgramOutput& output);

// What is computed once all parts are there: a program for each set of variables that are reduced.
std::vector<LoopNest> finishing_programs(const LoopNest& nest, const TileShape& shape);

}  // namespace tilewright::passes
