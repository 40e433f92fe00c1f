// Tensors that are made of numbers and their size: arange, linspace, eye.
#include "ops/append.h"
#include "ops/composites.h"
#include "tensor/literals.h"
#include "tensor/size_family.h"

#include <fmt/format.h>

#include <cmath>

namespace tilewright {

namespace {

// A number that a tensor is made of.
struct Number {
  Number(double v) : dtype(DType::f64), real(v) {}
  Number(Index v) : dtype(DType::i64), whole(v) {}
  DType dtype;
  double real = 0;
  Index whole = 0;
};

using Values = std::vector<ir::Value>;

// What is to be made, and how a graph says it.
struct Made {
  const char* name;
  Shape shape;
  std::vector<Number> numbers = {};
  std::function<ir::Value(ir::Graph&, const Values& numbers, const Shape&)> write;
};

ir::Value constant(ir::Graph& graph, const Number& n) {
  return is_float(n.dtype) ? ops::constant(graph, n.dtype, {}, n.real)
                           : ops::constant_int(graph, n.dtype, {}, n.whole);
}

// Recorded with the numbers as constants where a function is; else run by a kernel that takes them, and
// serves other sizes.
Tensor make(Context& context, const Made& made, const Location& where) {
  const std::shared_ptr<detail::ContextState>& state = context.state();
  const std::lock_guard lock(state->mutex);
  return detail::in_function(made.name, where, [&] {
    ir::check_shape(made.shape);
    detail::DeviceState& device = state->device(state->options.device);
    if (const auto trace = detail::creation_trace(*state, *device.device)) {
      const auto write = [&](ir::Graph& graph, const auto&) {
        Values numbers;
        for (const Number& n : made.numbers) numbers.push_back(constant(graph, n));
        return Values{made.write(graph, numbers, made.shape)};
      };
      return detail::record(state, trace, {}, write, where).at(0);
    }
    std::vector<Tensor> numbers;
    for (const Number& n : made.numbers) {
      const void* value = is_float(n.dtype) ? static_cast<const void*>(&n.real) : &n.whole;
      numbers.push_back(context.from_memory(value, n.dtype, 1, Shape{}, n.dtype, where));
    }
    const auto graph_of = [&](const Shape& shape) {
      ir::Graph graph(made.name);
      Values inputs;
      for (const Tensor& n : numbers)
        inputs.push_back({&graph, graph.add_input(fmt::format("a{}", inputs.size()), n.impl()->type)});
      graph.set_outputs({made.write(graph, inputs, shape).id});
      return graph;
    };
    const auto longer = [&](std::size_t axis) -> std::optional<ir::Graph> {
      Shape other = made.shape;
      if (axis >= other.extents().size() || other[static_cast<int>(axis)] <= 1) return std::nullopt;
      ++other[static_cast<int>(axis)];
      return graph_of(other);
    };
    return run_graph(state, device, *eager_graph(device, graph_of(made.shape), longer), numbers).at(0);
  });
}

// 0, 1, … in the type of `numbers`, one for each element.
ir::Value counted(ir::Graph& graph, const Shape& shape, DType dtype) {
  return ops::cast(ops::iota(graph, shape, 0), dtype);
}

[[noreturn]] void does_not_hold(DType dtype, const std::string& number, const Location& where) {
  throw Error(fmt::format("arange: {} does not hold {}", name(dtype), number), where);
}

}  // namespace

Tensor Context::arange(Index n, DType dtype, const Location& where) {
  if (!is_float(dtype) && n > 1 && wrap_to(dtype, n - 1) != n - 1)
    does_not_hold(dtype, std::to_string(n - 1), where);
  return make(*this,
              {.name = "arange",
               .shape = {n},
               .write = [&](ir::Graph& graph, const Values&,
                            const Shape& shape) { return counted(graph, shape, dtype); }},
              where);
}

Tensor Context::whole_range(const WholeRange& range, DType dtype, const Location& where) {
  const auto [start, stop, step] = range;
  if (step == 0) throw Error("arange: the step is 0", where);
  // In 128 bits: the distance of two i64 is in none.
  using Wide = __int128;
  const Wide distance = Wide{stop} - start;
  const Wide count =
      distance == 0 || (distance > 0) != (step > 0) ? Wide{0} : (distance - (step > 0 ? 1 : -1)) / step + 1;
  if (count > std::numeric_limits<Index>::max())
    throw Error(fmt::format("arange: from {} to {} by {} are too many numbers", start, stop, step), where);
  const auto last = count > 0 ? static_cast<Index>(start + (count - 1) * step) : start;
  if (!is_float(dtype) && count > 0)
    for (const Index end : {start, last})
      if (wrap_to(dtype, end) != end) does_not_hold(dtype, std::to_string(end), where);
  return make(*this,
              {.name = "arange",
               .shape = {static_cast<Index>(count)},
               .numbers = {start, step},
               .write =
                   [&](ir::Graph& graph, const Values& in, const Shape& shape) {
                     return ops::cast(counted(graph, shape, DType::i64) * in[1] + in[0], dtype);
                   }},
              where);
}

Tensor Context::arange(double start, double stop, double step, DType dtype, const Location& where) {
  if (step == 0) throw Error("arange: the step is 0", where);
  const double count = std::ceil((stop - start) / step);
  constexpr double kMost = 0x1p62;  // far more than any memory holds
  if (!(count < kMost))
    throw Error(fmt::format("arange: from {} to {} by {} is no number of elements", start, stop, step),
                where);
  const Index length = count > 0 ? static_cast<Index>(count) : 0;
  const double last = start + static_cast<double>(length - 1) * step;
  if (is_integer(dtype) && length > 0)
    for (const double number : {start, start + (length > 1 ? step : 0), last})
      if (static_cast<double>(float_to_int(dtype, number)) != number)
        does_not_hold(dtype, fmt::format("{}", number), where);
  return make(*this,
              {.name = "arange",
               .shape = {length},
               .numbers = {start, step},
               .write =
                   [&](ir::Graph& graph, const Values& in, const Shape& shape) {
                     return ops::cast(counted(graph, shape, DType::f64) * in[1] + in[0], dtype);
                   }},
              where);
}

Tensor Context::linspace(double start, double stop, Index count, DType dtype, const Location& where) {
  if (!is_float(dtype)) throw Error(fmt::format("linspace: {} is not a float type", name(dtype)), where);
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  return make(*this,
              {.name = "linspace",
               .shape = {count},
               .numbers = {start, step, count > 1 ? stop : start},
               .write =
                   [&](ir::Graph& graph, const Values& in, const Shape& shape) {
                     const ir::Value place = ops::iota(graph, shape, 0);
                     const ir::Value between = ops::cast(place, DType::f64) * in[1] + in[0];
                     return ops::cast(ops::where(ops::eq(place, shape[0] - 1), in[2], between), dtype);
                   }},
              where);
}

Tensor Context::eye(Index rows, std::optional<Index> columns, DType dtype, const Location& where) {
  return make(*this,
              {.name = "eye",
               .shape = {rows, columns.value_or(rows)},
               .write =
                   [&](ir::Graph& graph, const Values&, const Shape& shape) {
                     return ops::cast(ops::eq(ops::iota(graph, shape, 0), ops::iota(graph, shape, 1)), dtype);
                   }},
              where);
}

Tensor positions(const Tensor& x, Index axis, const Location& where) {
  const auto write = [&](ir::Graph& graph, const Values& in) {
    return Values{ops::iota(graph, {in[0].shape()[ops::axis_of("positions", in[0], axis)]}, 0)};
  };
  return detail::apply("positions", {x}, write, where).at(0);
}

}  // namespace tilewright
