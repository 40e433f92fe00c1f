#include "support/program_families.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"

#include <fmt/format.h>

namespace tilewright::test {

using ir::Graph;
using ir::Value;

namespace {

Value input(Graph& graph, const char* name, const Shape& shape, DType dtype = DType::f32) {
  return {&graph, graph.add_input(name, {dtype, shape})};
}

Value input(Graph& graph, const char* name, int i, const Shape& shape) {
  return input(graph, fmt::format("{}{}", name, i).c_str(), shape);
}

// --- arithmetic

Value chain(Graph& graph, int n) {
  const Value x = input(graph, "x", {64, 256});
  Value y = x;
  for (int i = 0; i < n; ++i) y = i % 3 == 0 ? ops::sin(y) : i % 3 == 1 ? y * x : y + 1.0 * (i % 7 + 1);
  return y;
}

Value diamonds(Graph& graph, int n) {
  Value x = input(graph, "x", {64, 256});
  for (int i = 0; i < n; ++i) x = x * x + x * 0.5;
  return x;
}

Value selections(Graph& graph, int n) {
  const Value x = input(graph, "x", {64, 64});
  Value y = x;
  for (int i = 0; i < n; ++i) y = ops::where(ops::gt(y, 0.1 * i), y * y, y + x);
  return y;
}

Value users_of_one_value(Graph& graph, int n) {
  const Value y = ops::exp(input(graph, "x", {64, 64}));
  Value sum = y;
  for (int i = 0; i < n; ++i) sum = sum + ops::sin(y * (0.1 * i));
  return sum;
}

Value many_inputs(Graph& graph, int n) {
  Value sum = ops::sin(input(graph, "x", {64, 64}));
  for (int i = 0; i < n; ++i) sum = sum * ops::sin(input(graph, "x", i, {64, 64}));
  return sum;
}

// --- pieces and views

Value nested_concat(Graph& graph, int n) {
  Value x = input(graph, "x", {2});
  for (int i = 0; i < n; ++i) x = ops::concat({x, x, x}, 0);
  return x * x * x;
}

// Parts of three sizes, as ragged batches have.
Value wide_concat(Graph& graph, int n) {
  std::vector<Value> parts;
  parts.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) parts.push_back(input(graph, "x", i, {1 + i % 3, 4}));
  return ops::sin(ops::concat(parts, 0));
}

Value wide_concat_of_columns(Graph& graph, int n) {
  std::vector<Value> parts;
  parts.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) parts.push_back(input(graph, "x", i, {4, 1 + i % 3}));
  return ops::sin(ops::concat(parts, 1));
}

Value wide_concat_of_computed(Graph& graph, int n) {
  const Value x = input(graph, "x", {4});
  std::vector<Value> parts;
  parts.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) parts.push_back(x * (0.5 + i));
  const Value whole = ops::concat(parts, 0);
  return whole * whole;
}

Value concats_of_computed(Graph& graph, int n) {
  Value x = input(graph, "x", {2});
  for (int i = 0; i < n; ++i) {
    const Value b = ops::concat({x, x, x}, 0);
    x = b * b;
  }
  return x;
}

Value nested_stack(Graph& graph, int n) {
  Value x = input(graph, "x", {2});
  for (int i = 0; i < n; ++i) x = ops::reshape(ops::stack({x, x, x}, 1), {-1});
  return x * x * x;
}

Value nested_pad(Graph& graph, int n) {
  Value x = input(graph, "x", {16});
  for (int i = 0; i < n; ++i) x = ops::pad(x, {1}, {0}, 1.0) * ops::pad(x, {0}, {1}, 2.0);
  return x;
}

// A value's neighbours: read at three places, each of which is read at three.
Value stencils(Graph& graph, int n) {
  Value x = input(graph, "x", {128});
  for (int i = 0; i < n; ++i) {
    const Value left = ops::slice_axis(ops::pad(x, {1}, {0}), 0, {.start = 0, .stop = 128}),
                right = ops::slice_axis(ops::pad(x, {0}, {1}), 0, {.start = 1, .stop = 129});
    x = left * right + x;
  }
  return x;
}

Value rolled(Value x, int axis = 0) {
  return ops::concat(
      {ops::slice_axis(x, axis, {.start = 1}), ops::slice_axis(x, axis, {.start = 0, .stop = 1})}, axis);
}

Value rolls(Graph& graph, int n) {
  Value x = input(graph, "x", {128});
  for (int i = 0; i < n; ++i) x = rolled(x) * x;
  return x;
}

Value views_of_views(Graph& graph, int n) {
  Value x = input(graph, "x", {128});
  for (int i = 0; i < n; ++i) x = rolled(x);
  return x * x * x;
}

// Views alone: what is copied on the way is made of earlier copies only.
Value rotations(Graph& graph, int n) {
  Value x = input(graph, "x", {16, 16});
  for (int i = 0; i < n; ++i) x = rolled(x, i % 2);
  return x;
}

// Each step reads all parts before it: dense connections.
Value growing_concat(Graph& graph, int n) {
  Value x = input(graph, "x", {4, 8});
  for (int i = 0; i < n; ++i) x = ops::concat({x, ops::tanh(ops::sum(x, {1}, ops::Keep::yes))}, 1);
  return x;
}

// Axes that do not merge: each position is divided by those of the one before.
Value reshaped_transposes(Graph& graph, int n) {
  Value x = input(graph, "x", {12, 15});
  for (int i = 0; i < n; ++i) x = x * ops::reshape(ops::transpose(x, {1, 0}), {12, 15});
  return x;
}

Value transposes(Graph& graph, int n) {
  Value x = input(graph, "x", {16, 16});
  for (int i = 0; i < n; ++i) x = x * ops::transpose(x, {1, 0}) + x;
  return x;
}

Value broadcasts(Graph& graph, int n) {
  Value x = input(graph, "x", {16, 16});
  for (int i = 0; i < n; ++i)
    x = x * ops::broadcast_to(ops::slice(x, {0, i % 16}, {1, 1}, {16, 1}), {16, 16});
  return x;
}

// --- reductions and loops

Value softmaxes(Graph& graph, int n) {
  Value x = input(graph, "x", {64, 256});
  for (int i = 0; i < n; ++i) x = ops::softmax(x * 2.0);
  return x;
}

Value sums_of_one_value(Graph& graph, int n) {
  const Value y = ops::exp(input(graph, "x", {64, 64}));
  Value sum = ops::sum(y);
  for (int i = 0; i < n; ++i) sum = sum + ops::sum(ops::sin(y * (0.1 * i)));
  return sum;
}

Value cumulative_sums(Graph& graph, int n) {
  Value x = input(graph, "x", {16, 64});
  for (int i = 0; i < n; ++i) x = ops::sin(ops::cumsum(x, i % 2));
  return x;
}

Value gathers(Graph& graph, int n) {
  Value x = input(graph, "x", {64, 16});
  const Value rows = input(graph, "rows", {64}, DType::i64);
  for (int i = 0; i < n; ++i) x = ops::sin(ops::take(x, rows, 0)) * x;
  return x;
}

// --- layers

Value dense_layers(Graph& graph, int n) {
  Value x = input(graph, "x", {32, 64});
  for (int i = 0; i < n; ++i)
    x = ops::tanh(ops::matmul(x, input(graph, "w", i, {64, 64})) + input(graph, "b", i, {64}));
  return x;
}

Value residual_layers(Graph& graph, int n) {
  Value x = input(graph, "x", {32, 256});
  for (int i = 0; i < n; ++i) {
    const Value w = input(graph, "w", i, {256, 256}), gamma = input(graph, "gamma", i, {256}),
                beta = input(graph, "beta", i, {256});
    x = x + ops::layer_norm(ops::gelu(ops::matmul(x, w)), gamma, beta);
  }
  return x;
}

Value attention_layers(Graph& graph, int n) {
  Value x = input(graph, "x", {64, 64});
  for (int i = 0; i < n; ++i) {
    const Value q = ops::matmul(x, input(graph, "q", i, {64, 64})),
                k = ops::matmul(x, input(graph, "k", i, {64, 64})),
                v = ops::matmul(x, input(graph, "v", i, {64, 64}));
    x = x + ops::matmul(ops::softmax(ops::matmul(q, ops::transpose(k, {1, 0})) * 0.1), v);
  }
  return x;
}

}  // namespace

const std::vector<ProgramFamily>& program_families() {
  static const std::vector<ProgramFamily> families = {
      {"chain", chain, 250, false},
      {"diamonds", diamonds, 40},
      {"selections", selections, 30, false},
      {"users_of_one_value", users_of_one_value, 100, false},
      {"many_inputs", many_inputs, 32},
      {"wide_concat", wide_concat, 64},
      {"wide_concat_of_columns", wide_concat_of_columns, 64},
      {"wide_concat_of_computed", wide_concat_of_computed, 128},
      {"nested_concat", nested_concat, 6},
      {"concats_of_computed", concats_of_computed, 6},
      {"nested_stack", nested_stack, 6},
      {"nested_pad", nested_pad, 8},
      {"stencils", stencils, 8},
      {"rolls", rolls, 8},
      {"views_of_views", views_of_views, 16},
      {"rotations", rotations, 400, false},  // the gradient is as many views of ones
      {"growing_concat", growing_concat, 20},
      {"reshaped_transposes", reshaped_transposes, 8},
      {"transposes", transposes, 24},
      {"broadcasts", broadcasts, 24},
      {"softmaxes", softmaxes, 8},
      {"sums_of_one_value", sums_of_one_value, 32, false},
      {"cumulative_sums", cumulative_sums, 8},
      {"gathers", gathers, 8},
      {"dense_layers", dense_layers, 12},
      {"residual_layers", residual_layers, 4},
      {"attention_layers", attention_layers, 2},
  };
  return families;
}

ir::Graph program_of(const ProgramFamily& family, Derivative derivative, int n) {
  Graph graph(family.name);
  const Value value = family.write(graph, n);
  if (derivative == Derivative::none) {
    graph.set_outputs({value.id});
    return graph;
  }
  graph.set_outputs({value.shape().rank() == 0 ? value.id : ops::sum(value).id});
  if (derivative == Derivative::second) {
    graph = passes::differentiate(graph, {0});
    const Value g{&graph, graph.outputs().back()};
    graph.set_outputs({ops::sum(g * g).id});
    return passes::differentiate(graph, {0});
  }
  std::vector<int> floats;
  for (int i = 0; i < static_cast<int>(graph.inputs().size()); ++i)
    if (is_float(graph.type(graph.inputs()[static_cast<std::size_t>(i)]).dtype)) floats.push_back(i);
  return passes::differentiate(graph, floats);
}

}  // namespace tilewright::test
