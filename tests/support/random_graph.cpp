// Grows a graph op by op from random inputs, with the building functions users have.
#include "support/random_graph.h"

#include "ops/composites.h"
#include "support/chain_graph.h"
#include "support/tiny_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {

namespace {

using ir::Value;

class Grower {
 public:
  Grower(const RandomGraphOptions& options, Choices& random)
      : options_(options), random_(random), graph_("random") {}

  ir::Graph run() {
    const Index inputs = random_.between(1, 3);
    for (Index i = 0; i < inputs; ++i) add_input();
    for (Index i = 0; random_.another(i, options_.ops); ++i) {
      if (random_.chance(0.04)) add_input();
      step();
    }
    std::vector<ir::NodeId> outputs;
    for (Index i = random_.between(1, 3); i > 0; --i) outputs.push_back(pick().id);
    outputs[0] = values_.back().id;
    graph_.set_outputs(outputs);
    return std::move(graph_);
  }

 private:
  // --- ingredients

  DType any_dtype() {
    static constexpr DType kWide[] = {DType::f32, DType::f32, DType::f32, DType::f64,    DType::i64,
                                      DType::i32, DType::i8,  DType::u8,  DType::boolean};
    static constexpr DType kNarrow[] = {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
    if (options_.narrow_floats && random_.chance(0.25)) return kNarrow[random_.below(std::size(kNarrow))];
    return kWide[random_.below(std::size(kWide))];
  }

  Index any_extent() {
    static constexpr Index kMixed[] = {1, 2, 3, 4, 5, 7, 8, 13, 17, 31};
    if (options_.family == GraphFamily::tiny) return tiny_extent(random_);
    return random_.chance(0.03) ? 0 : kMixed[random_.below(std::size(kMixed))];
  }

  Shape any_shape() {
    std::vector<Index> extents;
    for (Index rank = random_.between(0, options_.max_rank); rank > 0; --rank) {
      const Index extent = any_extent();
      if (Shape(extents).size() * extent <= options_.max_elements) extents.push_back(extent);
    }
    return Shape(extents);
  }

  void add_input() {
    const std::string name = random_.chance(0.1) ? "odd name" : fmt::format("x{}", graph_.inputs().size());
    keep({&graph_, graph_.add_input(name, {any_dtype(), any_shape()})});
  }

  bool fits(const Shape& shape) const { return shape.size() <= options_.max_elements; }
  void keep(Value v) { values_.push_back(v); }

  Value pick() {  // recent values more often, so that chains grow
    const auto n = static_cast<Index>(values_.size());
    const Index back = std::min(random_.below(n), random_.below(n));
    return values_[static_cast<std::size_t>(n - 1 - back)];
  }
  Value pick_float() {
    for (int i = 0; i < 4; ++i)
      if (const Value v = pick(); is_float(v.dtype())) return v;
    return moderate_float(pick());
  }
  Value pick_integer() {
    for (int i = 0; i < 4; ++i)
      if (const Value v = pick(); is_integer(v.dtype())) return v;
    return ops::cast(pick(), DType::i32);
  }
  // Something that broadcasts with `a`.
  Value partner(Value a) {
    static constexpr double kSpecial[] = {0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.25};
    if (random_.chance(0.15)) return ops::full_like(a, kSpecial[random_.below(std::size(kSpecial))]);
    for (int i = 0; i < 4; ++i) {
      const Value b = pick();
      const auto shape = broadcast(a.shape(), b.shape());
      if (shape && fits(*shape)) return b;
    }
    if (a.shape().rank() > 0 && random_.chance(0.5)) {
      const Index axis = random_.below(a.shape().rank());
      return ops::max(a, {axis}, ops::Keep::yes);
    }
    return ops::full_like(a, std::round(random_.real(-4, 4)) * 0.5);
  }
  // Integers of any size become small floats.
  Value moderate_float(Value v) {
    if (is_float(v.dtype())) return v;
    const DType dtype = random_.chance(0.7) ? DType::f32 : DType::f64;
    if (is_bool(v.dtype())) return ops::cast(v, dtype);
    return ops::cast(ops::bit_and(v, 7), dtype) * 0.5 - 1.5;
  }

  // --- steps

  void step() {
    static constexpr double kShares[] = {0.25, 0.50, 0.58, 0.64, 0.70, 0.82, 0.93, 0.97};
    switch (random_.category(kShares)) {
      case 0:
        return keep(options_.tame ? tame_unary(pick_float()) : wild_unary(pick_float()));
      case 1:
        return binary();
      case 2:
        return keep(choose());
      case 3:
        return keep(integers());
      case 4:
        return keep(convert(pick()));
      case 5:
        return options_.views ? view(pick()) : binary();
      case 6:
        return options_.reductions ? reduction(pick()) : binary();
      case 7:
        return options_.gathers ? gather() : binary();
      default:
        return options_.matmuls ? matmul() : keep(composite(pick_float()));
    }
  }

  Value tame_unary(Value a) {
    switch (random_.below(14)) {
      case 0:
        return ops::neg(a);
      case 1:
        return ops::abs(a);
      case 2:
        return ops::sin(a);
      case 3:
        return ops::cos(a);
      case 4:
        return ops::tanh(a);
      case 5:
        return ops::sigmoid(a);
      case 6:
        return ops::erf(a);
      case 7:
        return ops::exp(-ops::abs(a));
      case 8:
        return ops::log(ops::abs(a) + 1.0);
      case 9:
        return ops::sqrt(ops::abs(a) + 0.5);
      case 10:
        return ops::rsqrt(ops::abs(a) + 0.5);
      case 11:
        return ops::reciprocal(ops::abs(a) + 1.0);
      case 12:
        return ops::clamp(a, -1.5, 1.25);
      default:
        return random_.chance(0.5) ? ops::floor(a) : ops::round(a);
    }
  }

  Value wild_unary(Value a) {
    using Unary = Value (*)(Value);
    static constexpr Unary kUnary[] = {
        ops::neg,   ops::abs,   ops::sign,  ops::floor,    ops::ceil,         ops::round,
        ops::trunc, ops::sqrt,  ops::rsqrt, ops::exp,      ops::reciprocal,   ops::exp2,
        ops::log,   ops::expm1, ops::log2,  ops::log1p,    ops::sin,          ops::cos,
        ops::tan,   ops::tanh,  ops::erf,   ops::square,   ops::relu,         ops::sigmoid,
        ops::silu,  ops::isnan, ops::isinf, ops::isfinite, ops::stop_gradient};
    return kUnary[random_.below(std::size(kUnary))](a);
  }

  void binary() {
    Value a = pick();
    Value b = partner(a);
    const auto shape = broadcast(a.shape(), b.shape());
    if (!shape || !fits(*shape)) return;
    if (options_.tame) {
      a = moderate_float(a);
      b = moderate_float(b);
      return keep(tame_binary(a, b));
    }
    using Binary = Value (*)(const ops::Operand&, const ops::Operand&);
    static constexpr Binary kBinary[] = {ops::add,       ops::sub,        ops::mul, ops::div, ops::rem,
                                         ops::trunc_div, ops::pow,        ops::eq,  ops::lt,  ops::ge,
                                         ops::minimum,   ops::maximum,    ops::ne,  ops::gt,  ops::le,
                                         ops::atan2,     ops::logical_xor};
    keep(kBinary[random_.below(std::size(kBinary))](a, b));
  }

  Value tame_binary(Value a, Value b) {  // magnitudes stay below about 4
    switch (random_.below(10)) {
      case 0:
        return (a + b) * 0.5;
      case 1:
        return (a - b) * 0.5;
      case 2:
        return a * b * 0.25;
      case 3:
        return a / (ops::abs(b) + 1.0);
      case 4:
        return ops::minimum(a, b);
      case 5:
        return ops::maximum(a, b);
      case 6:
        return ops::atan2(a, ops::abs(b) + 0.5);
      case 7:
        return ops::lt(a, b);
      case 8:
        return ops::pow(ops::abs(a) * 0.25 + 0.5, random_.chance(0.5) ? ops::Operand(2) : ops::Operand(b));
      default:
        return a + random_.real(-0.5, 0.5);
    }
  }

  Value choose() {
    const Value a = pick();
    const Value b = partner(a);
    const auto shape = broadcast(a.shape(), b.shape());
    if (!shape || !fits(*shape)) return a;
    const Value condition = random_.chance(0.5) ? ops::gt(a, b) : ops::ne(b, 0);
    return random_.chance(0.3) ? ops::where(condition, a, 0) : ops::where(condition, a, b);
  }

  Value integers() {
    const Value a = pick_integer();
    const Value b = ops::cast(partner(a), a.dtype());
    const auto shape = broadcast(a.shape(), b.shape());
    if (!shape || !fits(*shape)) return a;
    switch (random_.below(8)) {
      case 0:
        return ops::add(a, b);
      case 1:
        return ops::sub(a, b);
      case 2:
        return ops::mul(a, b);
      case 3:
        return ops::bit_and(a, b);
      case 4:
        return ops::bit_or(a, ops::bit_not(b));
      case 5:
        return ops::bit_xor(a, b);
      case 6:
        return ops::shr(a, ops::bit_and(b, 3));
      default:
        return ops::shl(a, ops::bit_and(b, 3));
    }
  }

  Value convert(Value v) {
    const DType dtype = any_dtype();
    if (options_.tame && is_float(dtype)) v = moderate_float(v);
    return ops::cast(v, dtype);
  }

  void view(Value x) {
    const int rank = x.shape().rank();
    switch (random_.below(7)) {
      case 0:
        return keep(ops::reshape(x, {x.shape().size()}));
      case 1: {
        std::vector<Index> perm;
        for (int i = 0; i < rank; ++i) perm.insert(perm.begin() + random_.below(i + 1), i);
        return keep(ops::transpose(x, perm));
      }
      case 2:
        if (rank == 0) return;
        return keep(ops::slice_axis(x, random_.below(rank), any_range()));
      case 3:
        if (rank == 0) return;
        {
          const Value padded = ops::pad_axis(x, random_.below(rank), random_.below(3), random_.below(3), 1);
          if (fits(padded.shape())) keep(padded);
        }
        return;
      case 4:
        if (rank == 0) return;
        return keep(ops::flip(x, {random_.below(rank)}));
      case 5:
        return join(x);
      default:
        return stretch(x);
    }
  }

  ops::Range any_range() {
    static constexpr Index kSteps[] = {1, 1, 2, 3, -1, -2};
    ops::Range range{.step = kSteps[random_.below(std::size(kSteps))]};
    if (random_.chance(0.6)) range.start = random_.between(-6, 6);
    if (random_.chance(0.6)) range.stop = random_.between(-6, 12);
    return range;
  }

  void join(Value x) {
    if (x.shape().rank() == 0) return;
    const Index axis = random_.below(x.shape().rank());
    const Value other = random_.chance(0.5) ? x : ops::slice_axis(x, axis, any_range());
    const Value joined = ops::concat({x, ops::flip(other, {axis})}, axis);
    if (fits(joined.shape())) keep(joined);
  }

  void stretch(Value x) {
    const Value unit = ops::unsqueeze(x, random_.below(x.shape().rank() + 1));
    Shape shape = unit.shape();
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] == 1 && random_.chance(0.7)) shape[i] = random_.between(1, 7);
    if (fits(shape) && shape.rank() <= options_.max_rank + 2) keep(ops::broadcast_to(unit, shape));
  }

  void reduction(Value x) {
    ops::Axes axes;
    for (int i = 0; i < x.shape().rank(); ++i)
      if (random_.chance(0.5)) axes.push_back(i);
    const ops::Keep how = random_.chance(0.5) ? ops::Keep::yes : ops::Keep::no;
    const int rank = x.shape().rank();
    switch (random_.below(10)) {
      case 0:
      case 1:
        return keep(options_.tame ? ops::mean(moderate_float(x), axes, how) : ops::sum(x, axes, how));
      case 2:
        return keep(options_.tame ? ops::tanh(ops::sum(pick_float())) : ops::prod(x, axes, how));
      case 3:
        return keep(finite_extreme(ops::max(x, axes, how)));
      case 4:
        return keep(finite_extreme(ops::min(x, axes, how)));
      case 5:
        return keep(random_.chance(0.5) ? ops::any(x, axes, how) : ops::all(x, axes, how));
      case 6:
        if (rank > 0 && x.shape().size() > 0 && !is_bool(x.dtype()))
          keep(random_.chance(0.5) ? ops::argmax(x, rank - 1) : ops::argmin(x, 0, how));
        return;
      case 7:
        if (rank > 0) scan(x, random_.below(rank));
        return;
      case 8:
        return sort(x);
      default:
        if (rank > 0) keep(ops::softmax(moderate_float(x), random_.below(rank)));
        return;
    }
  }

  void scan(Value x, Index axis) {
    switch (random_.below(6)) {
      case 0:
        return keep(ops::cummax(x, axis));
      case 1:
        return keep(ops::cummin(x, axis));
      case 2:
        return keep(options_.tame ? ops::cumprod(ops::tanh(moderate_float(x)), axis) : ops::cumprod(x, axis));
      default:
        return keep(options_.tame ? ops::sin(ops::cumsum(moderate_float(x), axis)) : ops::cumsum(x, axis));
    }
  }

  void sort(Value x) {
    const int rank = x.shape().rank();
    if (rank == 0) return;
    const Index axis = random_.below(rank);
    const Order order = random_.chance(0.5) ? Order::ascending : Order::descending;
    switch (random_.below(3)) {
      case 0:
        return keep(ops::argsort(x, axis, order));
      case 1:
        return keep(ops::sort(x, axis, order));
      default:
        return keep(ops::topk(x, random_.between(0, x.shape()[static_cast<int>(axis)]), axis).first);
    }
  }

  // The largest of nothing is -inf or the lowest integer.
  Value finite_extreme(Value v) { return options_.tame && is_float(v.dtype()) ? ops::clamp(v, -8, 8) : v; }

  void gather() {
    const Value x = pick();
    if (x.shape().rank() == 0) return;
    const Index axis = random_.below(x.shape().rank());
    const Index extent = x.shape()[static_cast<int>(axis)];
    if (options_.placed && random_.chance(0.7)) return placed(x);
    if (random_.chance(0.6)) {
      const Value index = ops::bit_and(pick_integer(), 7);  // some lie outside
      Index size = index.shape().size();
      for (int i = 0; i < x.shape().rank(); ++i) size *= i == axis ? 1 : x.shape()[i];
      if (size <= options_.max_elements && index.shape().rank() <= 2) keep(ops::take(x, index, axis));
    } else {
      const Value index = ops::rem(ops::iota(graph_, x.shape(), axis) * 3, std::max<Index>(extent, 1));
      if (random_.chance(0.5)) return keep(ops::take_along(x, index, axis));
      if (!is_bool(x.dtype())) keep(ops::scatter_add_along(index, x, axis, x.shape()));
    }
  }

  // A block at a start that is data, some of whose numbers lie outside.
  void placed(Value x) {
    std::vector<Index> block = x.shape().extents();
    std::vector<Value> starts;
    for (Index& extent : block) {
      extent = extent > 0 ? 1 + random_.below(extent) : 0;
      const Value number = pick_integer();
      const Value one = ops::min(ops::reshape(number, Shape{number.shape().size()}), {}, ops::Keep::no);
      starts.push_back(random_.chance(0.5)
                           ? ops::constant_int(graph_, DType::i64, Shape{1}, random_.below(9) - 2)
                           : ops::reshape(ops::cast(ops::bit_and(one, 7), DType::i64), Shape{1}));
    }
    const Value start = ops::concat(starts, 0);
    const Value part = ops::dynamic_slice(x, start, Shape(block));
    if (random_.chance(0.4)) return keep(part);
    const Value value = is_float(x.dtype()) ? ops::tanh(part) : part;
    keep(ops::update_slice(x, ops::cast(value, x.dtype()), ops::flip(start, {0})));
    // Another block of the same tensor, which sees nothing of the first.
    if (random_.chance(0.3)) keep(ops::update_slice(x, ops::cast(part, x.dtype()), start));
  }

  void matmul() {
    const Value a = moderate_float(pick());
    if (a.shape().rank() < 2) return;
    const Value product = ops::matmul(a, ops::swap_axes(a, -1, -2));
    if (fits(product.shape())) keep(ops::tanh(product));
  }

  Value composite(Value x) {
    if (x.shape().rank() == 0) return ops::gelu(x);
    switch (random_.below(4)) {
      case 0:
        return ops::rms_norm(x, std::nullopt);
      case 1:
        return ops::layer_norm(x, std::nullopt, std::nullopt, 0.1);
      case 2:
        return ops::gelu(x, ops::Gelu::tanh);
      default:
        return ops::silu(x);
    }
  }

  RandomGraphOptions options_;
  Choices& random_;
  ir::Graph graph_;
  std::vector<Value> values_;
};

}  // namespace

ir::Graph random_graph(const RandomGraphOptions& options, Choices& choices) {
  constexpr double kGrown = 0.3;
  if (options.family == GraphFamily::products) return product_chain_graph(choices);
  if (options.family == GraphFamily::joined) return joined_graph(choices);
  if (options.family == GraphFamily::tiny && !choices.chance(kGrown)) return tiny_graph(choices);
  return Grower(options, choices).run();
}

ir::Graph random_graph(const RandomGraphOptions& options) {
  Random random(options.seed);
  return random_graph(options, random);
}

std::vector<ir::HostTensor> random_inputs(const ir::Graph& graph, std::uint64_t seed) {
  Random random(seed);
  std::vector<ir::HostTensor> inputs;
  for (ir::NodeId id : graph.inputs())
    inputs.push_back(random_host(graph.type(id), {.low = -3, .high = 3}, random));
  return inputs;
}

}  // namespace tilewright::test
