// A concat of many parts is taken apart: each element of a concat asks for every part whether it lies there,
// so that code and time of N parts in one kernel are N for each element, and the backend's compiler takes
// longer than that.
#pragma once

#include "passes/store/view_weights.h"

#include <vector>

namespace tilewright::passes {

// The operands of a concat that is about to be added, few enough for one kernel: parts beside one another are
// put together in memory first, and those again, as a tree.
std::vector<ir::NodeId> few_parts(ir::Graph& graph, ViewWeights& weights, const ir::Node& concat,
                                  std::vector<ir::NodeId> operands);

}  // namespace tilewright::passes
