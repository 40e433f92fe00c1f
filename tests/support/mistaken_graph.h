// A mistake for tests to find: a graph with other ops in the place of some of its own.
#pragma once

#include "ir/op.h"

#include <functional>

namespace tilewright::test {

// The graph with other ops: for each node but inputs that of `op_of`, which takes the same operands and
// attributes.
ir::Graph mistaken(const ir::Graph& graph, const std::function<const ir::Op*(ir::NodeId)>& op_of);

}  // namespace tilewright::test
