// What views of a product's operands are views of.
#pragma once

#include "ir/graph.h"

namespace tilewright::passes {

// Whether a node is a view with all elements of its operand: a reshape, a transpose or an expand.
bool is_view_of_all(const ir::Node& n);

// A matrix beneath views that change no element's row or column but for exchanging the two: expands and
// reshapes of axes before the last two, and transposes.
struct MatrixView {
  ir::NodeId source = -1;
  bool is_transposed = false;
};
MatrixView matrix_beneath(const ir::Graph& graph, ir::NodeId id);

// The node that views of all elements, and slices of what is computed, are taken of.
ir::NodeId source_beneath(const ir::Graph& graph, ir::NodeId id);

}  // namespace tilewright::passes
