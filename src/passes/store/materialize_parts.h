// What the passes share that put copies before products: a product by itself, views and their memory.
#pragma once

#include "passes/nest/loop_nest.h"

#include <map>
#include <optional>

namespace tilewright::passes {

// A product in a graph of its own, with the views that it reads and inputs in place of memory: what is tried
// there takes the same time however large the program is.
struct ProductAlone {
  ir::Graph graph;
  std::vector<ir::NodeId> operands;
  std::map<ir::NodeId, ir::NodeId> known;  // of the whole graph: views and memory that are here
};
ProductAlone alone(const ir::Graph& graph, const std::vector<ir::NodeId>& operands);

std::variant<LoopNest, Refusal> program_alone(const ProductAlone& product, const ir::Node& matmul);
// The nest of a product alone. None if its operands cannot be walked.
std::optional<LoopNest> program_of(const ProductAlone& product, const ir::Node& matmul);
std::optional<LoopNest> program_of(const ir::Graph& graph, const ir::Node& matmul,
                                   const std::vector<ir::NodeId>& operands);

// What a view is a view of.
ir::NodeId memory_of(const ir::Graph& graph, ir::NodeId id);

// The same view of other memory.
ir::NodeId view_of(ir::Graph& graph, ir::NodeId view, ir::NodeId from, ir::NodeId to);

// What a sum over an axis of no elements is everywhere, and any other reduction of nothing: the monoid's
// identity. `operand` is the type of the node's first operand. Nothing where there are elements.
std::optional<ir::NodeId> reduction_of_nothing(ir::Graph& graph, const ir::Node& node,
                                               const ir::Type& operand);

// A node that puts a value into memory as it is.
ir::NodeId copy_of(ir::Graph& graph, ir::NodeId id);

}  // namespace tilewright::passes
