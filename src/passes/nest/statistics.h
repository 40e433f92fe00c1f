// Statistics of a product: reductions along its rows or columns, or of all of it, in the kernel that computes
// and stores it. A program reduces what its tile holds of the reduced variables. Where that is not all of
// them, it leaves a part of the result in memory, and a small kernel reduces the parts and computes what is
// made of them.
#pragma once

#include "passes/nest/group_program.h"

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

// For each sym, whether `sym` is made of it with no statistic between; statistics themselves among them.
std::vector<bool> made_above_statistics(const GroupProgram& program, int sym);
// The place of an element among what a statistic reduces.
const IndexExpr& reduced_by(const GroupProgram& program, int statistic);

}  // namespace tilewright::passes
