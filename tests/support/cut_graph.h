// Smaller graphs of any graph: what is computed only to be computed with is cut off.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::test {

// Without what no output needs: one of its values alone as the output, the first computed first; then with an
// input in the place of a value, the last computed first. Each computes fewer values, or has fewer outputs.
std::vector<ir::Graph> cuts(const ir::Graph& graph);

}  // namespace tilewright::test
