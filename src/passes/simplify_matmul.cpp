// Rewrites of matrix products.
#include "passes/simplify_parts.h"

namespace tilewright::passes {

namespace {

using ir::OpClass;
using ir::Value;
using Replacement = std::optional<Value>;

Value through_views(Value v) {
  while (is_a(v, ops::kReshape) || is_a(v, ops::kExpand)) v = operand_of(v);
  return v;
}

bool is_reduction(Value v, tile::Monoid monoid) {
  const ir::Node& n = node_of(v);
  return n.op->kind == OpClass::reduce && *n.op->monoid == monoid;
}

// exp(x - max x): between 0 and 1, so that sums of its multiples are finite when those of its quotients are.
bool is_exp_below_maximum(Value v) {
  if (!is_a(v, ops::kExp)) return false;
  const Value shifted = operand_of(v);
  if (!is_a(shifted, ops::kSub)) return false;
  const Value maximum = through_views(operand_of(shifted, 1));
  return is_reduction(maximum, tile::Monoid::max) && same(operand_of(maximum), operand_of(shifted));
}

// One over the sum of `e` along its last axis, at every place of that axis.
std::optional<Value> inverse_of_row_sum(Value v, Value e) {
  if (!is_a(v, ops::kExpand)) return {};
  const Value column = operand_of(v), inverse = through_views(v);
  if (column.shape()[column.shape().rank() - 1] != 1 || !is_a(inverse, ops::kReciprocal)) return {};
  const Value sum = through_views(operand_of(inverse));
  if (!is_reduction(sum, tile::Monoid::sum) || !same(operand_of(sum), e)) return {};
  const std::vector<Index>& axes = node_of(sum).attrs.integers("axes");
  if (axes.size() != 1 || axes[0] != e.shape().rank() - 1) return {};
  return column;
}

// The quotients of a softmax are taken of the product's few columns instead of its long rows, and the sum
// need not be known before the product begins.
Replacement softmax_after_product(const Candidate& n) {
  if (n.op.kind != OpClass::matmul || !is_a(n.x[0], ops::kMul)) return {};
  for (std::size_t i : {0, 1}) {
    const Value e = operand_of(n.x[0], i);
    if (!is_exp_below_maximum(e)) continue;
    const std::optional<Value> column = inverse_of_row_sum(operand_of(n.x[0], 1 - i), e);
    if (!column || column->dtype() != n.type.dtype) continue;
    ir::Graph& graph = *e.graph;
    const Value product{&graph, graph.add(n.op, {e.id, n.x[1].id}, n.attrs)};
    return ops::mul(product, ops::broadcast_to(*column, n.type.shape));
  }
  return {};
}

constexpr Rewrite kMatmulRewrites[] = {
    {"softmax_after_product",
     "matmul(e * expand(1 / sum e), v) = matmul(e, v) * (1 / sum e) for e = exp(x - max x)",
     softmax_after_product},
};

}  // namespace

std::span<const Rewrite> matmul_rewrites() { return kMatmulRewrites; }

}  // namespace tilewright::passes
