// Products with weights, told from others by what stands beneath their operands' views.
#include "passes/graph/weight_products.h"

#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/graph/product_views.h"

#include <algorithm>
#include <optional>

namespace tilewright::passes {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;

namespace {

Index extent(const Shape& shape, int from_last) { return shape[shape.rank() - from_last]; }

Index matrix_size(const Shape& shape) { return extent(shape, 1) * extent(shape, 2); }

bool is_input(const Graph& graph, NodeId id) { return graph.node(id).op->kind == OpClass::input; }

// Rows that indices have picked.
bool is_gathered(const Graph& graph, NodeId source) {
  const OpClass kind = graph.node(source).op->kind;
  return kind == OpClass::take || kind == OpClass::take_along || kind == OpClass::dynamic_slice;
}

bool is_plain_f32_product(const Graph& graph, const Node& n) {
  if (n.op->kind != OpClass::matmul || n.type.dtype != DType::f32 || n.attrs.has("dtype")) return false;
  const ir::Type& a = graph.type(n.operands[0]);
  return a.dtype == DType::f32 && extent(a.shape, 1) > 1 && n.type.shape.size() > 0;
}

}  // namespace

void WeightProducts::set_apart(const Graph& graph, const Node& n) {
  if (n.op->kind == OpClass::matmul && n.attrs.has("dtype"))
    for (const NodeId operand : n.operands) apart_.insert(source_beneath(graph, operand));
  if (n.op->kind == OpClass::take || n.op->kind == OpClass::take_along ||
      n.op->kind == OpClass::dynamic_slice)
    apart_.insert(source_beneath(graph, n.operands[0]));
}

// A weight's gradient is known by its shape, and by an operand that a product of the weight has read.
bool WeightProducts::add_weight_gradient(const Graph& graph, const Node& n,
                                         const std::vector<NodeId>& users) {
  const Shape& shape = n.type.shape;
  const Node* sum = nullptr;
  if (shape.size() != matrix_size(shape)) {
    if (users.size() != 1) return false;
    sum = &graph.node(users[0]);
    if (sum->op != &ops::kSum || sum->attrs.has(ops::kApart)) return false;
    Index summed = 1;
    for (const Index axis : sum->attrs.integers("axes")) {
      if (axis + 2 >= shape.rank()) return false;
      summed *= shape[static_cast<int>(axis)];
    }
    if (summed * matrix_size(shape) != shape.size()) return false;  // some of the batch is kept
  }
  for (const std::size_t side : {0, 1}) {
    const NodeId x = source_beneath(graph, n.operands[side]),
                 other = source_beneath(graph, n.operands[1 - side]);
    const auto found = multiplied_.find(x);
    if (found == multiplied_.end() || is_input(graph, other) || is_gathered(graph, other)) continue;
    for (const Extents& weight : found->second) {
      const Index rows = extent(shape, 2), columns = extent(shape, 1);
      if ((rows != weight.rows || columns != weight.columns) &&
          (rows != weight.columns || columns != weight.rows))
        continue;
      const WeightProduct product{.kind = WeightProduct::Kind::weight_gradient, .side = side, .sum = sum};
      if (sum != nullptr) by_sum_.emplace(sum, product);
      products_.emplace(&n, product);
      return true;
    }
  }
  return false;
}

void WeightProducts::add_product(const Graph& graph, const Node& n) {
  for (const std::size_t side : {1, 0}) {
    const MatrixView weight = matrix_beneath(graph, n.operands[side]);
    const NodeId argument = source_beneath(graph, weight.source);
    if (!is_input(graph, argument) || apart_.contains(argument)) continue;
    const Shape& matrix = graph.type(n.operands[side]).shape;
    if (graph.type(weight.source).shape.size() != matrix_size(matrix)) continue;
    const bool is_batch = n.type.shape.size() != matrix_size(n.type.shape);
    if (is_batch && side == 0) continue;  // its batch is no rows of the result
    const NodeId x = source_beneath(graph, n.operands[1 - side]);
    if (is_gathered(graph, x)) continue;
    const bool last = (side == 0) != weight.is_transposed;
    const bool is_forward = contracted_.emplace(weight.source, last).first->second == last;
    if (is_forward) multiplied_[x].push_back({extent(matrix, 2), extent(matrix, 1)});
    using Kind = WeightProduct::Kind;
    products_.emplace(&n,
                      WeightProduct{.kind = is_forward ? Kind::forward : Kind::input_gradient, .side = side});
    return;
  }
}

WeightProducts::WeightProducts(const Graph& graph) {
  const std::vector<bool> live = graph.live();
  const std::vector<std::vector<NodeId>> users = graph.users();
  for (NodeId id = 0; id < graph.size(); ++id)
    if (live[static_cast<std::size_t>(id)]) set_apart(graph, graph.node(id));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (!live[static_cast<std::size_t>(id)] || !is_plain_f32_product(graph, n)) continue;
    if (!add_weight_gradient(graph, n, users[static_cast<std::size_t>(id)])) add_product(graph, n);
  }
}

const WeightProduct* WeightProducts::find(const Node& node) const {
  const auto found = products_.find(&node);
  return found == products_.end() ? nullptr : &found->second;
}

const WeightProduct* WeightProducts::find_summed(const Node& node) const {
  const auto found = by_sum_.find(&node);
  return found == by_sum_.end() ? nullptr : &found->second;
}

}  // namespace tilewright::passes
