// What tiles leave of statistics: parts, and the programs that finish them.
#pragma once

#include "passes/nest/tile_shape.h"

namespace tilewright::passes {

// Programs that have a part of each result: 1 where a tile holds all that is reduced.
Index statistic_parts(const GroupProgram& program, const TileShape& shape, int statistic);

// Elements of all parts of a statistic.
Index elements_of_parts(const GroupProgram& program, const TileShape& shape, int statistic);

// Those of several parts, in order. The parts of the first lie in the shape's temporary `statistics`, those
// of the others in the following ones, laid out [parts][parallel variables that are not reduced].
std::vector<int> statistics_in_parts(const GroupProgram& program, const TileShape& shape);
bool is_in_parts(const GroupProgram& program, const TileShape& shape, const ProgramOutput& output);

// What is computed once all parts are there: a program for each set of variables that are reduced.
std::vector<GroupProgram> finishing_programs(const GroupProgram& program, const TileShape& shape);

}  // namespace tilewright::passes
