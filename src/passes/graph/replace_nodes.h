// A graph anew, with some of its nodes written by other ops.
#pragma once

#include "ir/graph.h"

#include <functional>
#include <optional>
#include <vector>

namespace tilewright::passes {

// What stands in a node's place, made of its operands in the new graph; nullopt: the node as it is. Inputs
// are not asked for.
using NodeReplacement =
    std::function<std::optional<ir::Value>(const ir::Node& node, const std::vector<ir::Value>& operands)>;

ir::Graph replace_nodes(const ir::Graph& graph, const NodeReplacement& replacement);
// The same for nodes of which `is_one` says so; the graph as it is if there are none.
ir::Graph replace_nodes(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& is_one,
                        const std::function<ir::Value(const ir::Node&, ir::Value operand)>& replacement);

}  // namespace tilewright::passes
