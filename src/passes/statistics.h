// Statistics of a product: reductions along its rows or columns, or of all of it, in the kernel that computes
// and stores it. A program reduces what its tile holds of the reduced variables. Where that is not all of
// them, it leaves a part of the result in memory, and a small kernel reduces the parts and computes what is
// made of them.
#pragma once

#include "passes/tile_emitter.h"

namespace tilewright::passes {

// The syms of this kind, in order.
std::vector<int> statistics_of(const GroupProgram& program);

// The first statistic that `sym` is made of, or -1.
int statistic_behind(const GroupProgram& program, int sym);

// Variables that a tile must hold as a whole, since what is reduced over them is needed along them, beside
// the product or by another statistic: a row's sum by which its elements are divided.
std::vector<bool> held_variables(const GroupProgram& program);
// Elements of a row or column that every target's tiles can hold.
inline constexpr Index kMostHeld = 128;

// Whether the tiles of the program's products can be reduced to its statistics: one loop gives these
// products, no variable is held that is longer than kMostHeld, and what is stored is made of statistics that
// tiles hold as a whole, or over one set of variables.
bool can_leave_statistics(const GroupProgram& program);

// Programs that have a part of each result: 1 where a tile holds all that is reduced.
Index statistic_parts(const GroupProgram& program, const TileShape& shape, int statistic);

// Of all its parts.
Index elements_of_parts(const GroupProgram& program, const TileShape& shape, int statistic);

// Those of several parts, in order. The parts of the first lie in the shape's temporary `statistics`, those
// of the others in the following ones, laid out [parts][parallel variables that are not reduced].
std::vector<int> statistics_in_parts(const GroupProgram& program, const TileShape& shape);
bool is_in_parts(const GroupProgram& program, const TileShape& shape, const ProgramOutput& output);

// What is computed once all parts are there: a program for each set of variables that are reduced.
std::vector<GroupProgram> finishing_programs(const GroupProgram& program, const TileShape& shape);

}  // namespace tilewright::passes
