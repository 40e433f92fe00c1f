// Sums by index whose order is the same in every run.
#pragma once

#include "ir/graph.h"

namespace tilewright::passes {

// Sums of floats by index (scatter_add, and with it the gradients of gathers) are lowered to atomic
// additions, whose order, and so whose rounding, differs from run to run. Here each becomes a reduction:
// every element of the result goes through all indices and adds what is meant for it. That costs as many
// comparisons as the result has elements along the axis times the update's size; nothing of that size is
// stored. Where the result has many places, as the table of an embedding, the indices are sorted instead, and
// the runs of equal ones summed in as many rounds as their number has binary digits.
ir::Graph in_fixed_order(const ir::Graph& graph);

}  // namespace tilewright::passes
