// f32 products on a unit that multiplies narrower types.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// Writes an f32 product as products of parts of its operands, where the target's matrix unit is predicted to
// be faster that way (tile::PartProducts). Each operand is a sum of three bf16 numbers of 8 bits of mantissa,
// x = x0 + 2^-7 x1 + 2^-14 x2, which together are all 24 bits of an f32. Of the nine products of parts the
// six largest are added up, those of one scale in one product whose depth holds one pair of parts behind the
// other:
//
//   a · b = a0·b0 + 2^-7 ([a0 a1]·[b1 b0] + 2^-7 [a0 a1 a2]·[b2 b1 b0])
//
// What is left out is below 2^-24 of each product, as f32's own rounding is. The scales keep parts of small
// numbers out of the subnormal range. a0·b0 is what infinity, NaN and overflow are decided by. Only its sums
// must be as exact as f32's (DotPrecision::two_level); the others are 2^-9 of it.
//
// After H. Ootomo and R. Yokota, International Journal of High Performance Computing Applications 36 (2022),
// which recovers f32's accuracy from products of half its width, and G. Henry, P. Tang, A. Heinecke,
// "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019.
//
// Products that may be rounded to tf32 stay, and so do those of attention, which share a kernel with another
// product, and those whose result is many times larger than the operands, which are better not stored at all.
ir::Graph with_products_by_parts(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
