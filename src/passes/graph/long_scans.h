// Scans that are longer than a program holds.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// A scan takes its whole axis in one program. One that is longer than the target holds on chip becomes scans
// of blocks, a scan of the blocks' last elements, and a pointwise combination of both; blocks are then
// computed side by side (G. Blelloch, Prefix Sums and Their Applications, 1990).
ir::Graph with_scans_in_blocks(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
