// Values that are compared with their own largest or smallest element, as gradients of max and min do. They
// must be stored: computed again in another kernel, or rounded to a narrow type in one place alone, a value
// is not equal to its own maximum any more, and the gradient would be lost.
#pragma once

#include "ir/graph.h"

#include <set>

namespace tilewright::passes {

// The nodes before views, inputs apart.
std::set<ir::NodeId> compared_with_extremes(const ir::Graph& graph);

}  // namespace tilewright::passes
