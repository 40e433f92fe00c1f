// See product_programs.h.
#include "support/product_programs.h"

#include "ops/composites.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"
#include "support/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewright::test {

namespace {

using ir::Graph;
using ir::Value;

constexpr Index kMostElements = 600;  // of any value

class Writer {
 public:
  explicit Writer(Choices& random) : random_(random), graph_("products") {
    derivative_ = static_cast<Derivative>(random_.below(3));
    constexpr double kShares[] = {0.6, 0.9};
    constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::bf16};
    dtype_ = kDTypes[random_.category(kShares)];
    edge_ = random_.between(2, 4);
    batch_ = random_.between(2, 3);
  }

  ProductProgram run() {
    const Index inputs = random_.between(1, 3);
    for (Index i = 0; i < inputs; ++i)
      keep({&graph_, graph_.add_input(fmt::format("v{}", i), {dtype_, matrices()})});
    for (Index i = 0; random_.another(i, random_.between(2, 8)); ++i) step();
    ProductProgram program{.derivative = derivative_};
    if (derivative_ == Derivative::none) {
      std::vector<ir::NodeId> outputs = {values_.back().id};
      for (Index i = random_.between(0, 3); i > 0; --i) outputs.push_back(pick().id);
      graph_.set_outputs(outputs);
      program.graph = std::move(graph_);
      return program;
    }
    Value loss = scalar_of(values_.back());
    for (Index i = random_.between(0, 1); i > 0; --i) loss = loss + scalar_of(pick());
    graph_.set_outputs({loss.id});
    for (Index i = 0; i < inputs; ++i)
      if (i == 0 || random_.chance(0.6)) program.wrt.push_back(static_cast<int>(i));
    program.graph = passes::differentiate(graph_, program.wrt);
    if (derivative_ == Derivative::second) program.graph = derived_again(program);
    return program;
  }

 private:
  // The gradient of the sum of the squares of the gradients.
  static Graph derived_again(const ProductProgram& first) {
    Graph graph = first.graph;
    Value sum;
    for (std::size_t i = 0; i < first.wrt.size(); ++i) {
      const Value g{&graph, graph.outputs()[1 + i]};
      const Value squares = ops::sum(g * g);
      sum = i == 0 ? squares : sum + squares;
    }
    graph.set_outputs({sum.id});
    return passes::differentiate(graph, first.wrt);
  }

  bool smooth() const { return derivative_ != Derivative::none; }
  Index edge() { return random_.chance(0.75) ? edge_ : random_.between(1, 6); }
  Shape matrices() {
    const Index batch = random_.below(3);  // none, one, several
    const Index rows = edge(), columns = edge();
    return batch == 0 ? Shape{rows, columns} : Shape{batch == 1 ? 1 : batch_, rows, columns};
  }

  void keep(Value v) {
    if (v.shape().size() <= kMostElements) values_.push_back(v);
  }
  Value pick() {  // recent values more often
    const auto n = static_cast<Index>(values_.size());
    const Index back = std::min(random_.below(n), random_.below(n));
    return values_[static_cast<std::size_t>(n - 1 - back)];
  }
  Index axis_of(Value v) { return random_.below(v.shape().rank()); }

  Value scalar_of(Value v) {
    switch (random_.below(3)) {
      case 0:
        return ops::sum(v * v);
      case 1:
        return ops::sum(v * ops::sin(v));
      default:
        return ops::sum(v);
    }
  }

  void step() {
    constexpr double kShares[] = {0.42, 0.58, 0.72};
    switch (random_.category(kShares)) {
      case 0:
        return product();
      case 1:
        return reduction();
      case 2:
        return arithmetic();
      default:
        return keep(view(pick()));
    }
  }

  // Views v as a matrix, or several, whose last axis (or the one before it) is `depth` long, by any view that
  // does so.
  std::optional<Value> with_depth(Value v, Index depth, Index axis) {
    if (v.shape().rank() < 2) v = ops::reshape(v, {1, -1});
    const auto fits = [&](Value x) { return x.shape()[static_cast<int>(x.shape().rank() + axis)] == depth; };
    if (fits(v) && !random_.chance(0.2)) return v;
    const Value turned = ops::swap_axes(v, -1, -2);
    if (fits(turned) && !random_.chance(0.3)) return turned;
    const Index elements = v.shape().size();
    if (depth == 0 || elements % depth != 0) return fits(v) ? std::optional(v) : std::nullopt;
    return axis == -1 ? ops::reshape(v, {elements / depth, depth})
                      : ops::reshape(v, {depth, elements / depth});
  }

  void product() {
    Value a = random_.chance(0.3) ? view(pick()) : pick();
    if (a.shape().rank() < 2) a = ops::reshape(a, {1, -1});
    const Index depth = a.shape()[a.shape().rank() - 1];
    std::optional<Value> b = with_depth(random_.chance(0.3) ? view(pick()) : pick(), depth, -2);
    if (!b) b = ops::swap_axes(a, -1, -2);
    if (!can_broadcast(a, *b)) b = ops::reshape(*b, {b->shape()[b->shape().rank() - 2], -1});
    if (b->shape()[b->shape().rank() - 2] != depth) b = ops::swap_axes(a, -1, -2);
    Value m = ops::matmul(a, *b);
    if (m.shape().size() > kMostElements) return;
    if (random_.chance(0.5)) m = m * (1.0 / static_cast<double>(1 + depth));
    keep(m);
    if (random_.chance(0.4)) keep(residual(m));
  }

  static bool can_broadcast(Value a, Value b) {
    const Shape &x = a.shape(), &y = b.shape();
    for (int back = 3; back <= std::min(x.rank(), y.rank()); ++back) {
      const Index p = x[x.rank() - back], q = y[y.rank() - back];
      if (p != q && p != 1 && q != 1) return false;
    }
    return true;
  }

  Value residual(Value m) {
    for (int tries = 0; tries < 4; ++tries) {
      Value other = pick();
      if (other.shape() == m.shape()) return random_.chance(0.7) ? m + other : m * other;
      if (other.shape().size() == m.shape().size()) return m + ops::reshape(other, m.shape());
    }
    return m + ops::sin(m);
  }

  void arithmetic() {
    const Value v = pick();
    switch (random_.below(smooth() ? 5 : 6)) {
      case 0:
        return keep(v * 0.5);
      case 1:
        return keep(ops::sin(v));
      case 2:
        return keep(residual(v));
      case 3:
        return keep(ops::tanh(v));
      case 4:
        return keep(v * v);
      default:
        return keep(ops::maximum(v, 0.25));
    }
  }

  void reduction() {
    const Value v = pick();
    if (v.shape().rank() == 0) return keep(v + 1.0);
    const Index axis = random_.chance(0.6) ? 0 : axis_of(v);
    const auto stay = random_.chance(0.5) ? ops::Keep::yes : ops::Keep::no;
    constexpr double kShares[] = {0.75, 0.88};
    switch (random_.category(kShares)) {
      case 0:
        return keep(ops::sum(v, {axis}, stay));
      case 1:
        return keep(ops::softmax(v, axis));
      default:
        return keep(smooth() ? ops::prod(v, {axis}, stay) : ops::max(v, {axis}, stay));
    }
  }

  Shape factored(Index elements) {
    std::vector<Index> extents;
    for (Index rest = elements; random_.chance(0.6) && extents.size() < 3;) {
      const Index factor = random_.between(1, 6);
      if (rest == 0 || rest % factor != 0) continue;
      rest /= factor;
      elements = rest;
      extents.push_back(factor);
    }
    extents.insert(extents.begin() + random_.below(static_cast<Index>(extents.size()) + 1), elements);
    return Shape(extents);
  }

  Value view(Value v) {
    const int rank = v.shape().rank();
    if (rank == 0) return ops::reshape(v, {1, 1});
    const Index axis = axis_of(v);
    const Index extent = v.shape()[static_cast<int>(axis)];
    switch (random_.below(10)) {
      case 0:
      case 1:
        return rank < 2 ? v : ops::swap_axes(v, -1, -2);
      case 2:
      case 3:
        return ops::reshape(v, factored(v.shape().size()));
      case 4:
        return rank == 2 ? ops::broadcast_to(ops::unsqueeze(v, 0), {batch_, v.shape()[0], v.shape()[1]})
               : v.shape()[0] == 1 ? ops::broadcast_to(v, with_front(v.shape(), batch_))
                                   : ops::swap_axes(v, 0, axis);
      case 5:
        return ops::flip(v, {axis});
      case 6:
        return extent < 2 ? v : ops::slice_axis(v, axis, {.start = 1});
      case 7:
        return ops::concat({v, v}, axis);
      case 8:
        return ops::pad_axis(v, axis, 1, 0);
      default:
        return ops::swap_axes(v, 0, axis);
    }
  }

  static Shape with_front(const Shape& shape, Index extent) {
    std::vector<Index> extents = shape.extents();
    extents[0] = extent;
    return Shape(extents);
  }

  Choices& random_;
  Graph graph_;
  Derivative derivative_ = Derivative::none;
  DType dtype_ = DType::f64;
  Index edge_ = 2, batch_ = 2;
  std::vector<Value> values_;
};

double loss_of(const Graph& loss, const std::vector<ir::HostTensor>& inputs) {
  return ops::evaluate(loss, inputs)[0].f[0];
}

}  // namespace

ProductProgram random_product_program(Choices& random) { return Writer(random).run(); }

std::vector<ir::HostTensor> program_inputs(const ir::Graph& graph, std::uint64_t seed) {
  std::vector<ir::HostTensor> inputs = random_inputs(graph, seed);
  constexpr double kModerate =
      0.25;  // of 3, the largest of random_inputs(): products of products stay moderate
  for (ir::HostTensor& t : inputs)
    for (double& x : t.f) x = round_to(t.type.dtype, kModerate * x);
  return inputs;
}

std::string difference_from_slopes(const ProductProgram& program, std::uint64_t seed) {
  if (program.wrt.empty() || program.graph.type(program.graph.outputs()[0]).dtype != DType::f64) return "";
  const std::vector<ir::HostTensor> inputs = program_inputs(program.graph, seed);
  Graph loss = program.graph;
  loss.set_outputs({program.graph.outputs()[0]});
  const std::vector<ir::HostTensor> derived = ops::evaluate(program.graph, inputs);
  constexpr std::size_t kFew = 3;
  for (std::size_t w = 0; w < program.wrt.size(); ++w) {
    const auto input = static_cast<std::size_t>(program.wrt[w]);
    for (std::size_t i = 0; i < std::min(kFew, inputs[input].f.size()); ++i) {
      const auto slope = [&](double step) {
        auto up = inputs, down = inputs;
        up[input].f[i] += step;
        down[input].f[i] -= step;
        return (loss_of(loss, up) - loss_of(loss, down)) / (2 * step);
      };
      // The error of a slope over h falls as h², down to where the loss's rounding is seen: the distances
      // between several say how large it is.
      const double far = slope(4e-5), middle = slope(2e-5), near = slope(1e-5), got = derived[1 + w].f[i];
      const double error = 8 * (std::abs(far - middle) + std::abs(middle - near)) +
                           1e-9 * std::abs(derived[0].f[0]) + 1e-6 * std::abs(near) + 1e-9;
      if (!std::isfinite(near) || !std::isfinite(error)) continue;
      if (!(std::abs(got - near) <= error))
        return fmt::format("derivative {} of input {}: {} where differences say {} within {}", i, input, got,
                           near, error);
    }
  }
  return "";
}

}  // namespace tilewright::test
