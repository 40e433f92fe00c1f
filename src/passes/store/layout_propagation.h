// Values that a product reads with their axes exchanged and merged, as the heads of attention become columns,
// are stored in that order by whoever computes them.
#pragma once

#include "ir/op.h"

#include <vector>

namespace tilewright::passes {

// The operands of a matmul that is about to be added to `graph`. One whose memory is computed, and whose axes
// are exchanged before they are merged, is read from a copy in the order of the exchanged axes, if that
// leaves the product fewer loops: as a pointwise node behind what computes it, fusion makes the copy the way
// in which that is stored.
std::vector<ir::NodeId> propagate_layout(ir::Graph& graph, const ir::Node& matmul,
                                         std::vector<ir::NodeId> operands);

}  // namespace tilewright::passes
