// What the calls of checkpoint(f) compute, told from the rest of the program.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::passes {

// Of each node a number, above 0, of the call that computes it; 0: none does. What a call computes lies
// between its marks (ops/checkpoint.h): it is made of what goes in, and goes into what comes out. Empty where
// the graph has no marks.
std::vector<int> checkpointed_calls(const ir::Graph& graph);

}  // namespace tilewright::passes
