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
#include <unordered_map>
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
  std::optional<Value> written(const Node& n, const std::vector<Value>& x) {
    if (weights_) {
      if (const WeightProduct* own = weights_->find(n)) {
        if (own->sum == nullptr) return in_8_bits(*own, n, x);
        factors_of_sums_.emplace(own->sum, x);
        return x[0];  // which nothing reads: the sum is written of the factors
      }
      if (const WeightProduct* own = weights_->find_summed(n))
        return in_8_bits(*own, n, factors_of_sums_.at(&n));
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

  // A product of a weight, or the sum over a batch of such: one of two matrices.
  Value in_8_bits(const WeightProduct& own, const Node& n, const std::vector<Value>& x) const {
    const ScaledOperand a = scaled_operand(own, 0, x[0]), b = scaled_operand(own, 1, x[1]);
    const Value y = ops::reshape(ops::scaled_matmul(a.codes, a.scale, b.codes, b.scale), n.type.shape);
    return rounded_.contains(&n) ? wide(ops::cast(y, type_)) : y;
  }

  ScaledOperand scaled_operand(const WeightProduct& own, std::size_t side, const Value& x) const {
    const Factor f = factor_of(own, side, x);
    const auto turned = [&](const Value& v) { return f.is_turned ? ops::swap_axes(v, 0, 1) : v; };
    if (precision_ == Precision::fp8) {
      // Gradients reach further, and have fewer digits to lose.
      const bool is_gradient = own.kind != WeightProduct::Kind::forward && side != own.side;
      const ScaledOperand s = scaled_by_tensor(f.matrix, is_gradient ? DType::f8e5m2 : DType::f8e4m3);
      return {turned(s.codes), s.scale};
    }
    if (side == 0) return scaled_by_rows(turned(f.matrix), DType::f8e4m3);
    const ScaledOperand s = scaled_by_squares(f.matrix, DType::f8e4m3);  // the same squares both ways
    const Index columns = x.shape()[x.shape().rank() - 1];
    return {ops::slice_axis(turned(s.codes), 1, {.stop = columns}), turned(s.scale)};
  }

  // What is scaled: a matrix as it lies in memory, whose transpose may be the factor. Products that read one
  // value share it.
  struct Factor {
    Value matrix;
    bool is_turned = false;
  };

  // All batch axes are rows of the factor, or, of x in its weight's gradient, columns; a weight has none.
  Factor factor_of(const WeightProduct& own, std::size_t side, const Value& x) const {
    const auto joined = [](const Value& v) { return ops::reshape(v, {-1, v.shape()[v.shape().rank() - 1]}); };
    Graph& into = *x.graph;
    const MatrixView view = matrix_beneath(into, x.id);
    const Value source{&into, view.source};
    const Shape& shape = x.shape();
    const bool by_columns = own.kind == WeightProduct::Kind::weight_gradient && side == 0;
    const bool is_weight = own.kind != WeightProduct::Kind::weight_gradient && side == own.side;
    const bool is_one = shape.size() == shape[shape.rank() - 1] * shape[shape.rank() - 2];
    const bool is_whole =
        source.shape().size() == shape.size() && (is_one || view.is_transposed == by_columns);
    if (is_weight || is_whole) return {kept(joined(source)), view.is_transposed};
    return {kept(joined(by_columns ? ops::swap_axes(x, -1, -2) : x)), by_columns};
  }

  // What is computed is in 16 bits before it is in 8: so it is stored, for its largest value must be known
  // before it is rounded.
  Value kept(const Value& x) const { return is_computed(*x.graph, x.id) ? narrowed(x) : x; }

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
  std::optional<WeightProducts> weights_;                                // that are multiplied in 8 bits
  std::unordered_map<const Node*, std::vector<Value>> factors_of_sums_;  // over a batch, by the sum
  std::unordered_set<const Node*> factors_;                              // what products read, beneath views
  std::unordered_set<const Node*> rounded_;  // values that are rounded because a product is made of them
};

}  // namespace

Graph with_narrow_products(const Graph& graph, Precision precision) {
  const std::optional<DType> type = operand_type(precision);
  if (!type) return graph;
  NarrowWriter writer(graph, *type, precision);
  return replace_nodes(graph,
                       [&](const Node& n, const std::vector<Value>& x) { return writer.written(n, x); });
}

}  // namespace passes

}  // namespace tilewright
