// The first few places of a sorted row, without sorting the row.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// Where all that reads an argsort in descending order are its first k places, of a row that is much longer,
// only blocks of the row that may hold one of them are sorted. Blocks are put in the order of their largest
// elements, of equal ones the first block first. Before an element of a block that is not among the first k
// stand k others, the largest of each block ahead of it; so those k blocks hold all that is asked for. They
// are sorted together, in the order in which they lie: equal elements keep their order, and NaN, which is the
// largest of its block, counts as it does in a sort.
ir::Graph with_selections(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
