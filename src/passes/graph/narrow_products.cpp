// Operands of f32 products are rounded beneath their views; results where they lie between two products.
#include "passes/graph/narrow_products.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/graph/product_views.h"
#include "passes/graph/replace_nodes.h"
#include "passes/graph/scaled_operands.h"
#include "passes/graph/weight_products.h"

#include <optional>
#include <unordered_set>
#include <vector>

namespace tilewright {

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::f16:
      return "f16";
    case Precision::fp8:
      return "fp8";
    case Precision::fp8_block:
      return "fp8-block";
  }
  return "?";
}

std::optional<Precision> parse_precision(std::string_view text) {
  for (const Precision p : kAllPrecisions)
    if (name(p) == text) return p;
  return std::nullopt;
}

namespace passes {

namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::OpClass;
using ir::Value;

std::optional<DType> operand_type(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  if (precision == Precision::f16) return DType::f16;
  if (is_fp8(precision)) return DType::bf16;  // of what is not multiplied in 8 bits
  return std::nullopt;
}

// Whether a node is a product of f32, which the policy may narrow.
bool is_f32_product(const Graph& graph, const Node& n) {
  if (n.op->kind != OpClass::matmul || n.type.dtype != DType::f32) return false;
  const ir::Type& a = graph.type(n.operands[0]);
  return a.dtype == DType::f32 && a.shape[a.shape.rank() - 1] > 1;
}

// Whether a kernel makes the value: a caller's are inputs, or views of them.
bool is_computed(const Graph& graph, NodeId id) {
  const Node* n = &graph.node(id);
  while (is_view_of_all(*n) || n->op->kind == OpClass::slice) n = &graph.node(n->operands[0]);
  return !n->operands.empty();
}

// A view whose source costs no more to round: a slice of what is computed, as a whole, and none of a table
// that a caller has.
bool is_rounded_beneath(const Graph& graph, const Node& n) {
  return is_view_of_all(n) || (n.op->kind == OpClass::slice && is_computed(graph, n.operands[0]));
}

// What is added to a product's rows: one number for each column.
bool is_bias(const Graph& graph, NodeId id) {
  const Node& n = graph.node(id);
  if (n.op->kind != OpClass::expand || n.type.dtype != DType::f32) return false;
  const Shape& source = graph.type(n.operands[0]).shape;
  return source.size() == source[source.rank() - 1];
}

// The node whose result is rounded for other products: the product's sum with a bias, if nothing else reads
// the product, or the product itself.
const Node* rounded_at(const Graph& graph, NodeId product, const std::vector<NodeId>& users) {
  if (users.size() != 1) return &graph.node(product);
  const Node& user = graph.node(users[0]);
  if (user.op != &ops::kAdd) return &graph.node(product);
  const NodeId other = user.operands[0] == product ? user.operands[1] : user.operands[0];
  return other != product && is_bias(graph, other) ? &user : &graph.node(product);
}

// A sum over rows, as the gradient of a bias is.
bool is_sum_of_rows(const Graph& graph, const Node& n) {
  if (n.op != &ops::kSum || n.type.dtype != DType::f32) return false;
  const std::vector<Index>& axes = n.attrs.integers("axes");
  return !axes.empty() && axes.back() + 1 < graph.type(n.operands[0]).shape.rank();
}

class NarrowWriter {
 public:
  NarrowWriter(const Graph& graph, DType type, Precision precision)
      : graph_(graph), type_(type), precision_(precision) {
    if (is_fp8(precision)) weights_.emplace(graph);
    const std::vector<bool> live = graph.live();
    const std::vector<std::vector<NodeId>> users = graph.users();
    std::vector<bool> reaches(static_cast<std::size_t>(graph.size()), false);  // another product
    for (NodeId id = graph.size() - 1; id >= 0; --id) {
      const auto at = static_cast<std::size_t>(id);
      if (!live[at]) continue;
      const Node& n = graph.node(id);
      if (is_f32_product(graph, n)) {
        for (const NodeId operand : n.operands) factors_.insert(rounded_source(operand));
        if (reaches[at] && !n.attrs.has("dtype")) rounded_.insert(rounded_at(graph, id, users[at]));
      }
      if (n.op->kind == OpClass::matmul || reaches[at])
        for (const NodeId operand : n.operands) reaches[static_cast<std::size_t>(operand)] = true;
    }
  }

  // What stands in a node's place.
  std::optional<Value> written(const Node& n, const std::vector<Value>& x) const {
    if (weights_) {
      if (const WeightProduct* own = weights_->find(n))
        return own->sum == nullptr ? std::optional(in_8_bits(*own, n, x))
                                   : std::nullopt;  // the sum is written
      if (const WeightProduct* own = weights_->find_summed(n)) {
        const std::vector<NodeId>& factors = x[0].graph->node(x[0].id).operands;
        return in_8_bits(*own, n, {{x[0].graph, factors[0]}, {x[0].graph, factors[1]}});
      }
    }
    if (is_f32_product(graph_, n)) return product(n, x);
    if (rounded_.contains(&n)) return wide(ops::cast(ops::add(x[0], x[1]), type_));
    // What a product reads rounded is stored so, and not a second time for what sums it.
    if (is_sum_of_rows(graph_, n) && factors_.contains(rounded_source(n.operands[0])))
      return Value{x[0].graph, x[0].graph->add(*n.op, {wide(narrowed(x[0])).id}, n.attrs)};
    return std::nullopt;
  }

 private:
  Value product(const Node& n, const std::vector<Value>& x) const {
    ir::Attrs attrs = n.attrs;
    if (!rounded_.contains(&n)) attrs.set("dtype", std::string(name(DType::f32)));
    const Value a = narrowed(x[0]), b = narrowed(x[1]);
    return wide({a.graph, a.graph->add(*n.op, {a.id, b.id}, attrs)});
  }

  // Views of what is made of the value beneath them.
  template <class Make>
  Value beneath(const Value& x, const Make& make) const {
    Graph& into = *x.graph;
    const Node& n = into.node(x.id);
    if (!is_rounded_beneath(into, n)) return make(x);
    const Value source = beneath({&into, n.operands[0]}, make);
    return {&into, into.add(*n.op, {source.id}, n.attrs, n.location)};
  }

  Value narrowed(const Value& x) const {
    return beneath(x, [&](const Value& v) {
      const Node& n = v.graph->node(v.id);
      const bool is_wider = n.op->kind == OpClass::cast && v.graph->type(n.operands[0]).dtype == type_;
      return is_wider ? Value{v.graph, n.operands[0]} : ops::cast(v, type_);
    });
  }

  // What is computed is in 16 bits before it is in 8: so it is stored, for its largest value must be known
  // before it is rounded.
  Value kept(const Value& source) const {
    return is_computed(*source.graph, source.id) ? narrowed(source) : source;
  }

  // A product of a weight, or the sum over a batch of such: one of two matrices.
  Value in_8_bits(const WeightProduct& own, const Node& n, const std::vector<Value>& x) const {
    const ScaledOperand a = scaled_operand(own, 0, x[0]), b = scaled_operand(own, 1, x[1]);
    const Value y = ops::reshape(ops::scaled_matmul(a.codes, a.scale, b.codes, b.scale), n.type.shape);
    return rounded_.contains(&n) ? wide(ops::cast(y, type_)) : y;
  }

  ScaledOperand scaled_operand(const WeightProduct& own, std::size_t side, const Value& x) const {
    const bool is_gradient = own.kind != WeightProduct::Kind::forward && side != own.side;
    const auto as_matrix = [&](const Value& v) { return matrix_of(own, side, v); };
    if (precision_ == Precision::fp8) {
      // Gradients reach further, and have fewer digits to lose.
      const DType type = is_gradient ? DType::f8e5m2 : DType::f8e4m3;
      std::optional<Value> scale;
      const Value codes = beneath(x, [&](const Value& v) {
        const ScaledOperand s = scaled_by_tensor(kept(v), type);
        scale = s.scale;
        return s.codes;
      });
      return {as_matrix(codes), *scale};
    }
    const Value matrix = as_matrix(beneath(x, [&](const Value& v) { return kept(v); }));
    if (side == 0) return scaled_by_rows(matrix, DType::f8e4m3);
    // Of a weight the squares are the same both ways.
    const bool turned = matrix.graph->node(matrix.id).op->kind == OpClass::transpose;
    ScaledOperand s = scaled_by_squares(turned ? ops::swap_axes(matrix, 0, 1) : matrix, DType::f8e4m3);
    if (turned) s = {ops::swap_axes(s.codes, 0, 1), ops::swap_axes(s.scale, 0, 1)};
    s.codes = ops::slice_axis(s.codes, 1, {.stop = matrix.shape()[1]});
    return s;
  }

  // An operand of which all batch axes are rows, as a matrix.
  static Value matrix_of(const WeightProduct& own, std::size_t side, const Value& x) {
    const auto joined = [](const Value& v) { return ops::reshape(v, {-1, v.shape()[v.shape().rank() - 1]}); };
    if (own.kind == WeightProduct::Kind::weight_gradient)
      return side == 0 ? ops::swap_axes(joined(ops::swap_axes(x, -1, -2)), 0, 1) : joined(x);
    if (side != own.side) return joined(x);
    const std::optional<MatrixView> view = matrix_beneath(*x.graph, x.id);
    const Value matrix = joined({x.graph, view->source});
    return view->is_transposed ? ops::swap_axes(matrix, 0, 1) : matrix;
  }

  // The value that is rounded for a view of it.
  const Node* rounded_source(NodeId id) const {
    const Node* n = &graph_.node(id);
    while (is_rounded_beneath(graph_, *n)) n = &graph_.node(n->operands[0]);
    return n;
  }

  static Value wide(const Value& x) { return ops::cast(x, DType::f32); }

  const Graph& graph_;
  DType type_;
  Precision precision_;
  std::optional<WeightProducts> weights_;    // that are multiplied in 8 bits
  std::unordered_set<const Node*> factors_;  // what products read, beneath views
  std::unordered_set<const Node*> rounded_;  // values that are rounded because a product is made of them
};

}  // namespace

Graph with_narrow_products(const Graph& graph, Precision precision) {
  const std::optional<DType> type = operand_type(precision);
  if (!type) return graph;
  const NarrowWriter writer(graph, *type, precision);
  return replace_nodes(graph,
                       [&](const Node& n, const std::vector<Value>& x) { return writer.written(n, x); });
}

}  // namespace passes

}  // namespace tilewright
