// Sums over all axes of what was computed from its rows.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// A loss adds up, over rows and columns, what it computes with statistics of the rows (their norm, their
// largest logit). As one reduction over both axes it needs a pass of its own over the data; as a sum along
// the rows and another one of the rows' sums, the first belongs to the kernel that has the row on chip. Sums,
// products, extremes, any and all over several axes are written so, where the operand is stretched along some
// of these from a reduction, and is more than one program holds.
ir::Graph with_sums_by_rows(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
