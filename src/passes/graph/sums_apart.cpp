// The search for sums of products over a batch, and the graph that has them as nodes of their own.
#include "passes/graph/sums_apart.h"

#include "ops/functions.h"
#include "ops/stored_rows.h"
#include "passes/graph/made_of.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/simplify_parts.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tilewright::passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

constexpr std::size_t kMostPassed = 64;  // nodes between a product and the one its operand is made of: chosen
// Depth of products that kernels compute again: of a longer one they had better read the result. Chosen.
constexpr Index kMostDepth = 256;

bool passes_on(const Node& n) {
  switch (n.op->kind) {
    case OpClass::pointwise:
    case OpClass::cast:
    case OpClass::reshape:
    case OpClass::transpose:
    case OpClass::expand:
      return true;
    default:
      return false;
  }
}

// Whether arithmetic makes a value from a product that may be computed again.
bool is_made_of_product(const Graph& graph, NodeId value) {
  return is_made_of(graph, value, kMostPassed, [&](const Node& n) {
    if (n.op->kind != OpClass::matmul) return passes_on(n) ? Look::behind : Look::past;
    const Shape& a = graph.type(n.operands[0]).shape;
    return a[a.rank() - 1] <= kMostDepth ? Look::found : Look::past;
  });
}

// Whether a value has its operand's elements, in other places or rounded: to fewer digits, but neither to
// integers nor to the few digits of 8 bits, which are rounded to on purpose.
bool rearranges(const Node& n) {
  const bool rounds = n.op->kind == OpClass::cast && is_float(n.type.dtype) && size_bytes(n.type.dtype) >= 2;
  return rounds || n.op->kind == OpClass::reshape || n.op->kind == OpClass::transpose;
}

// Whether a node adds up, over batch axes, products with an operand that is made of other products.
bool is_sum_of_products(const Graph& graph, const Node& n) {
  if (n.op != &ops::kSum || !is_float(n.type.dtype)) return false;
  const int rank = graph.type(n.operands[0]).shape.rank();
  const std::vector<Index>& axes = n.attrs.integers("axes");
  if (rank < 3 || axes.empty() || axes.back() >= rank - 2) return false;
  NodeId id = n.operands[0];
  while (rearranges(graph.node(id))) id = graph.node(id).operands[0];
  const Node& product = graph.node(id);
  if (product.op->kind != OpClass::matmul || !is_float(product.type.dtype)) return false;
  const auto made = [&](NodeId o) { return is_made_of_product(graph, o); };
  return std::any_of(product.operands.begin(), product.operands.end(), made);
}

// The value that the sum adds up, as its product leaves it in f32: what is rounded for each head is rounded
// once, behind the sum.
Value unrounded(Value v) {
  const Node& n = node_of(v);
  if (n.op->kind == OpClass::matmul)
    return size_bytes(n.type.dtype) < size_bytes(DType::f32)
               ? ops::matmul(operand_of(v), operand_of(v, 1), DType::f32)
               : v;
  const Value from = unrounded(operand_of(v));
  if (n.op->kind == OpClass::cast) return from;
  return {v.graph, v.graph->add(*n.op, {from.id}, n.attrs)};
}

}  // namespace

std::optional<Graph> with_sums_apart(const Graph& graph) {
  std::set<const Node*> sums;
  for (const Node& n : graph.nodes())
    if (is_sum_of_products(graph, n)) sums.insert(&n);
  if (sums.empty()) return std::nullopt;
  return replace_nodes(graph, [&](const Node& n, const std::vector<Value>& x) -> std::optional<Value> {
    if (!sums.count(&n)) return std::nullopt;
    Graph& out = *x[0].graph;
    const ir::Attrs attrs{{"axes", n.attrs.integers("axes")}, {ops::kApart, Index{1}}};
    const Value sum{&out, out.add(*n.op, {unrounded(x[0]).id}, attrs)};
    return sum.dtype() == n.type.dtype ? sum : ops::cast(sum, n.type.dtype);
  });
}

}  // namespace tilewright::passes
