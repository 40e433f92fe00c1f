// Matmuls of few rows or few columns as sums of products: they do no more than read the other operand, which
// reductions do at the memory's rate.
#pragma once

#include "passes/nest/loop_nest.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// The program in the form that `target` runs best: its dot as it is, or as sums of products in the dot's
// accumulator, one for each of the few rows, all in one loop over the operand they share. Nothing where that
// is how it stands.
std::optional<LoopNest> other_form(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target);

}  // namespace tilewright::passes
