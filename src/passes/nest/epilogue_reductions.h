// EpilogueReductions of a product: reductions along its rows or columns, or of all of it, in the kernel that
// computes and stores it. A program reduces what its tile holds of the reduced variables. Where that is not
// all of them, it leaves a part of the result in memory, and a small kernel reduces the parts and computes
// what is made of them.
#pragma once

#include "passes/nest/loop_nest.h"

namespace tilewright::passes {

// The exprs of this kind, in order.
std::vector<int> epilogue_reductions_of(const LoopNest& nest);

// The first epilogue reduction that `expr` is made of, or -1.
int epilogue_reduction_behind(const LoopNest& nest, int expr);

// Variables that a tile must hold as a whole, since what is reduced over them is needed along them, beside
// the product or by another epilogue reduction: a row's sum by which its elements are divided.
std::vector<bool> held_variables(const LoopNest& nest);
// Elements of a row or column that every target's tiles can hold.
inline constexpr Index kMostHeld = 128;

// Whether the tiles of the program's products can be reduced to its epilogue reductions: one loop gives these
// products, no variable is held that is longer than kMostHeld, and what is stored is made of epilogue
// reductions that tiles hold as a whole, or over one set of variables.
bool can_reduce_in_epilogue(const LoopNest& nest);

// For each expr, whether `expr` is made of it with no epilogue reduction between; epilogue reductions
// themselves among them.
std::vector<bool> made_above_epilogue_reductions(const LoopNest& nest, int expr);
// The place of an element among what an epilogue reduction reduces.
const IndexExpr& reduced_by(const LoopNest& nest, int epilogue_reduction);

}  // namespace tilewright::passes
