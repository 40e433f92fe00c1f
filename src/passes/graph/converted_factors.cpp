// 8-bit factors become 16-bit ones where units have 16 bits at least.
#include "passes/graph/converted_factors.h"

#include "ir/op.h"
#include "ops/functions.h"
#include "passes/graph/replace_nodes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::passes {

namespace {

bool takes(const tile::Target& target, DType dtype) {
  return std::any_of(
      target.matrix_units.begin(), target.matrix_units.end(), [&](const tile::MatrixUnit& unit) {
        return std::any_of(unit.operands.begin(), unit.operands.end(), [&](const tile::MatrixOperands& row) {
          return row.dtype == dtype && !row.rounded;
        });
      });
}

}  // namespace

ir::Graph with_converted_factors(const ir::Graph& graph, const tile::Target& target) {
  if (!takes(target, DType::bf16) || takes(target, DType::f8e4m3) || takes(target, DType::f8e5m2))
    return graph;
  const auto is_8_bits = [&](const ir::Node& n) {
    return n.op->kind == ir::OpClass::matmul && is_f8(graph.type(n.operands[0]).dtype) &&
           is_f8(graph.type(n.operands[1]).dtype);
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_8_bits)) return graph;
  return replace_nodes(
      graph, [&](const ir::Node& n, const std::vector<ir::Value>& x) -> std::optional<ir::Value> {
        if (!is_8_bits(n)) return std::nullopt;
        const ir::Value a = ops::cast(x[0], DType::bf16), b = ops::cast(x[1], DType::bf16);
        return ir::Value{a.graph,
                         a.graph->add(*n.op, {a.id, b.id}, {{"dtype", std::string(name(n.type.dtype))}})};
      });
}

}  // namespace tilewright::passes
