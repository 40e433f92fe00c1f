// See tiny_graph.h. Values stay moderate: what is summed is divided first, so that no narrow float overflows.
#include "support/tiny_graph.h"

#include "ops/attention.h"
#include "ops/composites.h"
#include "passes/graph/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {

namespace {

using ir::Value;

constexpr Index kMostElements = 6000;  // of a value, and of a product's terms a tenth of a million
constexpr Index kMostTerms = 100000;

class TinyGrower {
 public:
  explicit TinyGrower(Choices& random) : random_(random), graph_("tiny") {}

  ir::Graph run() {
    static constexpr double kShares[] = {0.45, 0.65, 0.85};
    switch (random_.category(kShares)) {
      case 0:
        products();
        break;
      case 1:
        attention();
        break;
      case 2:
        groups();
        break;
      default:
        reductions();
    }
    return finished();
  }

 private:
  // --- ingredients

  Index extent() { return tiny_extent(random_); }
  DType float_type() {
    static constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
    return kTypes[random_.below(std::size(kTypes))];
  }
  Value input(DType dtype, const Shape& shape) {
    return {&graph_, graph_.add_input(fmt::format("x{}", graph_.inputs().size()), {dtype, shape})};
  }
  // A matrix with these extents, which may lie by columns.
  Value matrix(DType dtype, std::vector<Index> batch, Index rows, Index columns) {
    const bool by_columns = random_.chance(0.3);
    batch.push_back(by_columns ? columns : rows);
    batch.push_back(by_columns ? rows : columns);
    const Value x = input(dtype, Shape(batch));
    return by_columns ? ops::swap_axes(x, -1, -2) : x;
  }
  // The batch as one of the operands has it: some of it once for all, or missing.
  std::vector<Index> part_of(std::vector<Index> batch) {
    if (!batch.empty() && random_.chance(0.2)) batch.erase(batch.begin());
    for (Index& e : batch)
      if (random_.chance(0.2)) e = 1;
    return batch;
  }
  static DType wide(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }
  Value widened(Value x) { return ops::cast(x, wide(x.dtype())); }
  void put_out(Value x) { outputs_.push_back(x); }

  ops::Axes any_axes(Value x) {
    ops::Axes axes;
    for (int i = 0; i < x.shape().rank(); ++i)
      if (random_.chance(0.5)) axes.push_back(i);
    return axes;
  }
  Value reduced(Value x) {
    const ops::Axes axes = any_axes(x);
    const ops::Keep keep = random_.chance(0.5) ? ops::Keep::yes : ops::Keep::no;
    switch (random_.below(6)) {
      case 0:
        return ops::mean(x, axes, keep);
      case 1:
        return ops::max(x, axes, keep);
      case 2:
        return ops::sum(x * 0.0625, axes, keep);
      case 3:
        return ops::min(x, axes, keep);
      case 4:
        return ops::logsumexp(x, axes, keep);
      default:
        return x.shape().rank() > 0 ? ops::softmax(x, random_.below(x.shape().rank())) : x;
    }
  }
  Value pointwise(Value x) {
    switch (random_.below(6)) {
      case 0:
        return ops::tanh(x);
      case 1:
        return x * 0.25;
      case 2:
        return ops::silu(x);
      case 3:
        return ops::abs(x) + 0.5;
      case 4:
        return x * ops::sigmoid(x) - 0.125;
      default:
        return ops::sin(x);
    }
  }
  // x plus an input of the same shape, or of one with fewer elements that broadcasts.
  Value beside(Value x) {
    Shape shape = x.shape();
    for (int i = 0; i < shape.rank(); ++i)
      if (random_.chance(0.4)) shape[i] = 1;
    return (x + input(wide(x.dtype()), shape)) * 0.5;
  }

  // --- families

  Value product(Value a, Value b) {
    const double depth = static_cast<double>(std::max<Index>(a.shape()[a.shape().rank() - 1], 1));
    if (is_integer(a.dtype())) return ops::cast(ops::matmul(a, b), DType::f32) * (0.125 / depth);
    return ops::matmul(a, b, wide(a.dtype())) * (1 / std::sqrt(depth));
  }

  // Two operands that go together, within the most terms.
  std::pair<Value, Value> operands() {
    const DType dtype = random_.chance(0.12) ? DType::i8 : float_type();
    Index m = extent(), n = extent(), k = extent();
    std::vector<Index> batch;
    for (Index rank = random_.below(3); rank > 0; --rank)
      if (const Index e = extent(); Shape(batch).size() * e * m * n * k <= kMostTerms) batch.push_back(e);
    if (batch.empty() && random_.chance(0.1)) return {input(dtype, {k}), matrix(dtype, {}, k, n)};
    if (batch.empty() && random_.chance(0.1)) return {matrix(dtype, {}, m, k), input(dtype, {k})};
    const Value a = matrix(dtype, random_.chance(0.6) ? batch : part_of(batch), m, k);
    if (random_.chance(0.1)) return {a, ops::swap_axes(a, -1, -2)};
    return {a, matrix(dtype, random_.chance(0.6) ? batch : part_of(batch), k, n)};
  }

  void products() {
    auto [a, b] = operands();
    if (!is_integer(a.dtype()) && random_.chance(0.2)) a = ops::cast(pointwise(widened(a)), a.dtype());
    Value y = product(a, b);
    if (y.shape().size() > kMostElements) return put_out(y);
    if (random_.chance(0.5)) y = beside(y);
    if (random_.chance(0.5)) y = pointwise(y);
    if (random_.chance(0.3)) put_out(y);
    if (random_.chance(0.3)) y = follow(y);
    if (random_.chance(0.5)) y = reduced(y);
    if (random_.chance(0.2)) y = ops::cast(y, float_type());
    put_out(y);
  }

  // A second product, of the first.
  Value follow(Value y) {
    const int rank = y.shape().rank();
    if (rank < 2) return y;
    const Index columns = y.shape()[rank - 1];
    if (y.shape().size() * 33 > kMostTerms) return y;
    switch (random_.below(4)) {
      case 0:
        return product(y, ops::swap_axes(y, -1, -2));
      case 1:
        return product(ops::swap_axes(y, -1, -2), y);
      case 2:
        return product(matrix(y.dtype(), {}, extent(), y.shape()[rank - 2]), y);
      default:
        return product(y, matrix(y.dtype(), {}, columns, extent()));
    }
  }

  // bool (Tq, Tk), or nothing.
  std::optional<Value> mask(Index queries, Index keys) {
    const Shape all{queries, keys};
    const Value q = ops::iota(graph_, all, 0), k = ops::iota(graph_, all, 1);
    switch (random_.below(4)) {
      case 0:
        return std::nullopt;
      case 1:
        return ops::le(k, q + (keys - queries));
      case 2:
        return ops::logical_and(ops::le(k, q), ops::lt(q, k + 3));
      default: {
        const Value of_q = input(DType::i32, {queries}), of_k = input(DType::i32, {keys});
        return ops::eq(ops::broadcast_to(ops::reshape(of_q, {queries, 1}), all),
                       ops::broadcast_to(ops::reshape(of_k, {1, keys}), all));
      }
    }
  }

  void attention() {
    const DType dtype = float_type();
    const Index batch = random_.between(1, 2), shared = random_.between(1, 3);
    const Index each = random_.chance(0.6) ? 1 : random_.between(2, 3);
    const Index queries = extent(), keys = extent() * (random_.chance(0.15) ? 9 : 1);
    const Index depth = extent(), columns = random_.chance(0.6) ? depth : extent();
    const Value q = input(dtype, {batch, shared * each, queries, depth}),
                k = input(dtype, {batch, shared, keys, depth}),
                v = input(dtype, {batch, shared, keys, columns});
    Value scores = ops::attention_scores(q, k, 1 / std::sqrt(static_cast<double>(depth)));
    if (random_.chance(0.2)) scores = ops::tanh(scores * 0.5) * 2.0;
    const ops::Attended attended = ops::attend(
        scores, v, {.mask = mask(queries, keys), .result = random_.chance(0.5) ? dtype : wide(dtype)});
    if (random_.chance(0.8)) put_out(attended.out);
    if (outputs_.empty() || random_.chance(0.3)) put_out(attended.lse);
  }

  void groups() {
    const DType dtype = float_type();
    const Index count = extent() % 6 + 1, k = extent(), n = extent();
    const Value w = matrix(dtype, {count}, k, n);
    const DType index = random_.chance(0.5) ? DType::i64 : DType::i32;
    Value y;
    switch (random_.below(3)) {
      case 0: {
        const Index blocks = random_.between(1, 7);
        y = ops::grouped_matmul(matrix(dtype, {}, blocks * extent(), k), w, input(index, {blocks}));
        break;
      }
      case 1: {
        const Value rows = matrix(dtype, {}, extent() * random_.between(1, 3), k);
        // Ends ascend.
        y = ops::ragged_matmul(rows, w, ops::cumsum(ops::abs(input(index, {count})), 0));
        break;
      }
      default:
        y = ops::masked_matmul(matrix(dtype, {count}, extent(), k), w, input(index, {count}));
    }
    y = widened(y) * (1 / std::sqrt(static_cast<double>(k)));
    if (random_.chance(0.3)) y = pointwise(y);
    if (random_.chance(0.2)) y = reduced(y);
    put_out(y);
  }

  void reductions() {
    std::vector<Index> extents;
    for (Index rank = random_.between(1, 4); rank > 0; --rank)
      if (const Index e = extent(); Shape(extents).size() * e <= kMostElements) extents.push_back(e);
    Value y = widened(input(float_type(), Shape(extents)));
    for (Index i = random_.between(1, 4); i > 0; --i) {
      static constexpr double kShares[] = {0.4, 0.7, 0.9};
      switch (random_.category(kShares)) {
        case 0:
          y = pointwise(y);
          break;
        case 1:
          y = reduced(y);
          break;
        case 2:
          y = beside(y);
          break;
        default:
          if (y.shape().rank() > 1) y = ops::swap_axes(y, 0, -1);
      }
      if (random_.chance(0.2)) put_out(y);
    }
    put_out(y);
  }

  // --- the end

  ir::Graph finished() {
    const bool differentiable = std::any_of(graph_.inputs().begin(), graph_.inputs().end(),
                                            [&](ir::NodeId id) { return is_float(graph_.type(id).dtype); });
    std::vector<ir::NodeId> ids;
    if (!differentiable || !random_.chance(0.35)) {
      for (Value v : outputs_) ids.push_back(v.id);
      graph_.set_outputs(ids);
      return std::move(graph_);
    }
    Value loss;
    for (Value v : outputs_) {
      const Value wide_v = is_float(v.dtype()) ? widened(v) : ops::cast(v, DType::f32);
      // The logarithm of nothing but hidden keys is -inf.
      const Value bounded = ops::clamp(wide_v, -8, 8);
      const Value term = ops::cast(ops::sum(bounded * bounded) * 0.125, DType::f64);
      loss = loss.graph ? loss + term : term;
    }
    graph_.set_outputs({loss.id});
    std::vector<int> wrt;
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      if (is_float(graph_.type(graph_.inputs()[i]).dtype)) wrt.push_back(static_cast<int>(i));
    return passes::differentiate(graph_, wrt);
  }

  Choices& random_;
  ir::Graph graph_;
  std::vector<Value> outputs_;
};

}  // namespace

Index tiny_extent(Choices& choices) {
  static constexpr Index kExtents[] = {2, 3, 5, 7, 8, 9, 16, 17, 33};
  return choices.chance(0.5) ? 1 : kExtents[choices.below(std::size(kExtents))];
}

ir::Graph tiny_graph(Choices& choices) { return TinyGrower(choices).run(); }

}  // namespace tilewright::test
