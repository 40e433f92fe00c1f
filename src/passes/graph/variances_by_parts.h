// Sums of squared distances from a mean, of rows too long for a chip.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// Σ (x - m)², where m was made from x's own sum over the same axes, reads x a second time, unless a program
// keeps what it sums on chip. Cut in parts of L elements that a program does keep, with their means m_c, it
// is Σ_c (Σ (x - m_c)² + L (m_c - m)²), whatever m is, as x - m_c adds up to 0 in each part: both sums of a
// part are of one kernel, and what is left is one number a part. (Chan, Golub, LeVeque: Updating formulae and
// a pairwise algorithm for computing sample variances, 1979.) Sums are written so where what is summed
// exceeds a chip, and where a chip would have it all while the others have nothing to do.
ir::Graph with_variances_by_parts(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
