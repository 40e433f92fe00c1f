// Reductions over axes that lie apart, with axes between them that stay.
#pragma once

#include "passes/fuse/group_plans.h"

namespace tilewright::passes {

// A kernel that reduces the first and the last axis of [a, b, c] walks a in turn for each b, with rows of c
// alone on chip. Reduced one after the other, a first or c first, each kernel has long rows or columns. Sums,
// products, extremes, any and all are written so where the target predicts that the parts together take less
// time: by the order that takes least. A reduction that is fused with what its result meets again stays
// whole, if a program holds what it reduces.
ir::Graph with_separated_axes(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
