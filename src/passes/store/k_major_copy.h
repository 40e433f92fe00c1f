// Operands that a matrix unit takes only one way round, with their depth contiguous. Where the
// product is worth it, a copy lays them out so.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// The operands of `matmul`, renamed in `graph`, or views of copies of them that lie by depth. Only what is
// memory, or a strided view of it, is copied: each element once, however often the view repeats it.
std::vector<ir::NodeId> copy_k_major(ir::Graph& graph, const ir::Node& matmul,
                                     std::vector<ir::NodeId> operands, const tile::Target& target);

}  // namespace tilewright::passes
