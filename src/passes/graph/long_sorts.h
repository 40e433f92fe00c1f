// Sorts of rows that are longer than a program holds.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// An argsort takes its whole axis in one program. One that is longer than the target sorts on chip becomes an
// argsort of runs and rounds that merge pairs of runs, each a pointwise kernel: every place of a merged run
// finds by bisection how many elements of either run stand before it (S. Odeh et al., Merge Path, 2012).
ir::Graph with_sorts_in_runs(const ir::Graph& graph, const tile::Target& target);
// The most elements of one argsort.
Index longest_sort(const tile::Target& target, DType key);

}  // namespace tilewright::passes
