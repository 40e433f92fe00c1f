// What the calls of checkpoint(f) compute, told from the rest of the program.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::passes {

// A number for each node: that of the call which computes it, from 1 on; 0 where none does. What a call
// computes lies between its marks (ops/checkpoint.h): it is made of what goes in, and goes into what comes
// out. Empty where the graph has no marks.
std::vector<int> checkpointed_calls(const ir::Graph& graph);

}  // namespace tilewright::passes
