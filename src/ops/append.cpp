// Adding nodes, and what is checked before.
#include "ops/append.h"

#include <fmt/format.h>

namespace tilewright::ops {

Value append(const ir::Op& op, const std::vector<Value>& operands, const ir::Attrs& attrs) {
  std::vector<ir::NodeId> ids;
  ir::Graph* graph = operands[0].graph;
  for (const Value& v : operands) {
    if (v.graph != graph) throw Error(fmt::format("{}: the operands are of different graphs", op.name));
    ids.push_back(v.id);
  }
  return {graph, graph->add(op, ids, attrs)};
}

void fail(const Value& x, const std::string& message) {
  const std::string& location = x.graph->location();
  throw Error(location.empty() ? message : fmt::format("{} (at {})", message, location));
}

int axis_of(std::string_view op, const Value& x, Index axis, int rank) {
  const auto found = normalize_axis(axis, rank);
  if (!found) fail(x, fmt::format("{}: axis {} is out of range for {}", op, axis, to_string(x.type())));
  return *found;
}
int axis_of(std::string_view op, const Value& x, Index axis) {
  return axis_of(op, x, axis, x.shape().rank());
}

}  // namespace tilewright::ops
