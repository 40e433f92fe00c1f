// Scans that are longer than a program holds.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// A scan takes its whole axis in one program. One that is longer than the target holds on chip, or that is
// one of too few to keep all threads busy, becomes totals of blocks, a scan of these, and scans of the blocks
// that begin with what is before them; blocks are computed side by side (G. Blelloch, Prefix Sums and Their
// Applications, 1990).
ir::Graph with_scans_in_blocks(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
