// What the passes share that put copies before products: a product by itself, views and their memory.
#pragma once

#include "passes/nest/group_program.h"

namespace tilewright::passes {

// The product by itself, as its operands stand; nothing where they cannot be walked.
std::optional<GroupProgram> program_of(const ir::Graph& graph, const ir::Node& matmul,
                                       const std::vector<ir::NodeId>& operands);

// What a view is a view of.
ir::NodeId memory_of(const ir::Graph& graph, ir::NodeId id);

// The same view of other memory.
ir::NodeId view_of(ir::Graph& graph, ir::NodeId view, ir::NodeId from, ir::NodeId to);

// A node that puts a value into memory as it is.
ir::NodeId copy_of(ir::Graph& graph, ir::NodeId id);

}  // namespace tilewright::passes
