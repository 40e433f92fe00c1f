// Whether a value is made of something, by its operands and what these are made of.
#pragma once

#include "ir/graph.h"

#include <functional>

namespace tilewright::passes {

enum class Look : unsigned char {
  found,   // this node is it
  behind,  // its operands may be
  past,    // neither
};

// Looks at a value and what it is made of, at most at `most` nodes, until one is found.
bool is_made_of(const ir::Graph& graph, ir::NodeId value, std::size_t most,
                const std::function<Look(const ir::Node&)>& look);

}  // namespace tilewright::passes
