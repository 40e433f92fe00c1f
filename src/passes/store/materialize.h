// Which values memory must hold before anything is fused.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// Inserts a copy (a cast to the same type) where memory must hold what is only a view: operands of a matmul
// that are no strided views of memory, sources of gathers, outputs that are views, inputs or constants, and
// outputs named twice; and where the target's matrix unit wants an operand to lie otherwise (k_major_copy.h).
ir::Graph materialize(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
