#include "support/training_step.h"

#include "ops/checkpoint.h"
#include "ops/composites.h"
#include "passes/graph/differentiate.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tilewright::test {

using ir::Graph;
using ir::Value;

namespace {

// The usual ones: those of llm.c's and nanoGPT's GPT-2.
constexpr double kRate = 6e-4, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;

class Model {
 public:
  Model(Graph& graph, const TrainingStep& step) : graph_(graph), s_(step) {}

  // Inputs of the graph from here on are parameters.
  int first_parameter() const { return 2; }

  Value loss() {
    const Value tokens = input("tokens", DType::i64, {s_.batch, s_.time}),
                targets = input("targets", DType::i64, {s_.batch, s_.time});
    const Value wte = parameter("wte", {s_.vocabulary, s_.channels}),
                wpe = parameter("wpe", {s_.time, s_.channels});
    Value x = computed(ops::embedding(wte, tokens) + wpe);
    for (int i = 0; i < s_.layers; ++i)
      x = s_.checkpointed
              ? ops::checkpoint_edge(block(ops::checkpoint_edge(x, ops::Edge::in, i), i), ops::Edge::out, i)
              : block(x, i);
    const Value logits = ops::matmul(norm(x, "lnf"), ops::transpose(computed(wte), {1, 0}));
    return ops::cross_entropy(ops::cast(logits, DType::f32), targets);
  }

 private:
  Value input(const std::string& name, DType dtype, const Shape& shape) {
    return {&graph_, graph_.add_input(name, {dtype, shape})};
  }
  Value parameter(const std::string& name, const Shape& shape) { return input(name, DType::f32, shape); }
  Value computed(Value x) const { return ops::cast(x, s_.compute); }

  Value norm(Value x, const std::string& name) {
    const Value gamma = parameter(name + "w", {s_.channels}), beta = parameter(name + "b", {s_.channels});
    return computed(ops::layer_norm(ops::cast(x, DType::f32), gamma, beta));
  }

  Value linear(Value x, const std::string& name, Index from, Index to) {
    const Value w = parameter(name + "w", {from, to}), b = parameter(name + "b", {to});
    return ops::matmul(x, computed(w)) + computed(b);
  }

  Value attention(Value h, const std::string& name) {
    const Index c = s_.channels, depth = c / s_.heads;
    const Value qkv = linear(h, name + "qkv", c, 3 * c);
    const auto heads = [&](Index part) {  // (B, H, T, D)
      const Value one = ops::slice_axis(qkv, 2, {part * c, (part + 1) * c});
      return ops::transpose(ops::reshape(one, {s_.batch, s_.time, s_.heads, depth}), {0, 2, 1, 3});
    };
    const Value q = heads(0), k = heads(1), v = heads(2);
    const Value scores =
        ops::matmul(q, ops::swap_axes(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(depth)));
    const Shape square{s_.time, s_.time};
    const Value past = ops::ge(ops::iota(graph_, square, 0), ops::iota(graph_, square, 1));
    const Value weights = ops::softmax(ops::where(past, scores, -std::numeric_limits<double>::infinity()));
    const Value mixed =
        ops::reshape(ops::transpose(ops::matmul(weights, v), {0, 2, 1, 3}), {s_.batch, s_.time, c});
    return linear(mixed, name + "o", c, c);
  }

  Value block(Value x, int i) {
    const std::string name = fmt::format("h{}_", i);
    const Index c = s_.channels;
    x = x + attention(norm(x, name + "ln1"), name);
    const Value wide = ops::gelu(linear(norm(x, name + "ln2"), name + "fc", c, 4 * c), ops::Gelu::tanh);
    return x + linear(wide, name + "p", 4 * c, c);
  }

  Graph& graph_;
  const TrainingStep& s_;
};

// The parameter and its moments after the step.
struct Updated {
  Value parameter, first, second;
};

struct Corrections {
  Value first, second;  // 1 / (1 - βᵗ)
};

Updated adamw(Value p, Value g, Value m, Value v, const Corrections& corrections) {
  const Value first = m * kBeta1 + g * (1 - kBeta1), second = v * kBeta2 + g * g * (1 - kBeta2);
  const Value change =
      (first * corrections.first) / (ops::sqrt(second * corrections.second) + kEpsilon) + p * kDecay;
  return {p - change * kRate, first, second};
}

}  // namespace

Graph graph_of(const TrainingStep& step) {
  Graph forward("training_step");
  Model model(forward, step);
  forward.set_outputs({model.loss().id});
  std::vector<int> parameters;
  for (int i = model.first_parameter(); i < static_cast<int>(forward.inputs().size()); ++i)
    parameters.push_back(i);
  Graph graph = passes::differentiate(forward, parameters);
  const std::vector<ir::NodeId> computed = graph.outputs(), inputs = graph.inputs();
  const auto input = [&](const std::string& name, const Shape& shape) {
    return Value{&graph, graph.add_input(name, {DType::f32, shape})};
  };
  const Corrections corrections{input("correction1", {}), input("correction2", {})};
  std::vector<ir::NodeId> outputs = {computed[0]};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Value p{&graph, inputs[static_cast<std::size_t>(parameters[i])]}, g{&graph, computed[i + 1]};
    const std::string& name = graph.node(p.id).name;
    const Updated after =
        adamw(p, g, input("m_" + name, p.shape()), input("v_" + name, p.shape()), corrections);
    for (const Value& v : {after.parameter, after.first, after.second}) outputs.push_back(v.id);
  }
  graph.set_outputs(outputs);
  return graph;
}

}  // namespace tilewright::test
