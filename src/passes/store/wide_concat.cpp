// Parts of a wide concat are put together a few at a time, as copies in memory, until few are left.
#include "passes/store/wide_concat.h"

#include "ops/functions.h"
#include "passes/nest/loop_nest.h"
#include "passes/store/materialize_parts.h"

#include <algorithm>

namespace tilewright::passes {

using ir::Graph;
using ir::NodeId;
using ir::Value;

namespace {

bool is_memory(const Graph& graph, NodeId id) { return !is_inlined(graph.node(storage_node(graph, id))); }

// Parts that lie behind one another in memory are put together as rows of elements: vectors then run along
// what is contiguous, however short the last axis is.
NodeId together(Graph& graph, const std::vector<NodeId>& parts, int axis) {
  Shape shape = graph.type(parts[0]).shape;
  shape[axis] = 0;
  bool flat = true;
  for (int before = 0; before < axis; ++before) flat = flat && shape[before] == 1;
  std::vector<Value> values;
  for (NodeId part : parts) {
    shape[axis] += graph.type(part).shape[axis];
    flat = flat && is_memory(graph, part);
    values.push_back({&graph, part});
  }
  if (!flat) return copy_of(graph, ops::concat(values, axis).id);
  for (Value& value : values) value = ops::reshape(value, {value.shape().size()});
  const Value copy{&graph, copy_of(graph, ops::concat(values, 0).id)};
  return ops::reshape(copy, shape).id;
}

}  // namespace

std::vector<NodeId> few_parts(Graph& graph, ViewWeights& weights, const ir::Node& concat,
                              std::vector<NodeId> operands) {
  const auto axis = static_cast<int>(concat.attrs.integer("axis"));
  const ir::LocationScope scope(graph, concat.location);
  while (operands.size() > kMostLoads) {
    std::vector<NodeId> fewer;
    for (std::size_t i = 0; i < operands.size(); i += kMostLoads) {
      const auto begin = operands.begin() + static_cast<std::ptrdiff_t>(i);
      const auto count = static_cast<std::ptrdiff_t>(std::min(kMostLoads, operands.size() - i));
      const auto parts = weights.bounded(concat, {begin, begin + count});
      fewer.push_back(count == 1 ? parts[0] : together(graph, parts, axis));
    }
    operands = std::move(fewer);
  }
  return operands;
}

}  // namespace tilewright::passes
