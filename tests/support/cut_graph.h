// Smaller graphs of any graph: what is computed only to be computed with is cut off.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::test {

// Smaller graphs, without what no output needs: with one value alone as the output, the first computed first;
// then with an input in a value's place, the last computed first. Each has fewer values or outputs.
std::vector<ir::Graph> cuts(const ir::Graph& graph);

}  // namespace tilewright::test
