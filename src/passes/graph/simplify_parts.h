// The tables, and questions that the rewrites of simplify ask about values.
#pragma once

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/simplify.h"

namespace tilewright::passes {

std::span<const Rewrite> pointwise_rewrites();
std::span<const Rewrite> view_rewrites();
std::span<const Rewrite> pick_rewrites();
std::span<const Rewrite> matmul_rewrites();
std::span<const Rewrite> mask_rewrites();

inline const ir::Node& node_of(ir::Value v) { return v.graph->node(v.id); }
inline bool is_a(ir::Value v, const ir::Op& row) { return node_of(v).op == &row; }
inline ir::Value operand_of(ir::Value v, std::size_t i = 0) { return {v.graph, node_of(v).operands[i]}; }
inline bool same(ir::Value a, ir::Value b) { return a.id == b.id; }

// A constant's number: floats as `real`, integers and bool as `integer`.
struct Number {
  double real = 0;
  Index integer = 0;
};
std::optional<Number> constant_of(ir::Value v);
// The constant equals `number` exactly; 0 means +0.
bool is_number(ir::Value v, double number);
// A constant of one element's value at another shape.
ir::Value constant_at(ir::Value constant, const Shape& shape);

// A reduction that merges with itself over further axes.
inline bool is_fold(const ir::Op& op) {
  for (const ir::Op* row : {&ops::kSum, &ops::kProd, &ops::kMax, &ops::kMin, &ops::kAny, &ops::kAll})
    if (row == &op) return true;
  return false;
}

}  // namespace tilewright::passes
