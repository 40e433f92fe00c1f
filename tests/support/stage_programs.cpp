#include "support/stage_programs.h"

#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "support/attention_graph.h"

namespace tilewright::test {

using ir::Graph;
using ir::Value;

namespace {

Value input(Graph& graph, const char* name, DType dtype, const Shape& shape) {
  return {&graph, graph.add_input(name, {dtype, shape})};
}

std::vector<Value> softmax(Graph& graph) { return {ops::softmax(input(graph, "x", DType::f32, {64, 1000}))}; }

std::vector<Value> layernorm_gelu(Graph& graph) {
  const Value x = input(graph, "x", DType::bf16, {64, 768}), gamma = input(graph, "gamma", DType::f32, {768}),
              beta = input(graph, "beta", DType::f32, {768});
  return {ops::cast(ops::gelu(ops::layer_norm(ops::cast(x, DType::f32), gamma, beta)), DType::bf16)};
}

std::vector<Value> rms_norm(Graph& graph) {
  const Value x = input(graph, "x", DType::f32, {64, 256}), gamma = input(graph, "gamma", DType::f32, {256});
  return {ops::sum(ops::square(ops::rms_norm(x, gamma)))};
}

std::vector<Value> dropout_add(Graph& graph) {
  const Value x = input(graph, "x", DType::f32, {32, 512}),
              residual = input(graph, "residual", DType::f32, {32, 512});
  return {ops::dropout(x, input(graph, "seed", DType::i64, {}), {.p = 0.1}) + residual};
}

std::vector<Value> embedding(Graph& graph) {
  const Value table = input(graph, "table", DType::f32, {100, 64}),
              index = input(graph, "index", DType::i64, {48});
  return {ops::sum(ops::square(ops::embedding(table, index)))};
}

std::vector<Value> mlp(Graph& graph) {
  const Value x = input(graph, "x", DType::f32, {32, 48}), w = input(graph, "w", DType::f32, {48, 96}),
              b = input(graph, "b", DType::f32, {96});
  return {ops::gelu(ops::matmul(x, w) + b, ops::Gelu::tanh)};
}

std::vector<Value> attention(Graph& graph) {
  const Shape shape{1, 4, 256, 64};
  const Value q = input(graph, "q", DType::bf16, shape), k = input(graph, "k", DType::bf16, shape),
              v = input(graph, "v", DType::bf16, shape);
  const Positions at = positions(q, k);
  return {attention_graph(q, k, v, ops::le(at.key, at.query))};
}

std::vector<Value> two_layers(Graph& graph) {
  const Value w1 = input(graph, "w1", DType::f32, {48, 96}), b1 = input(graph, "b1", DType::f32, {96}),
              w2 = input(graph, "w2", DType::f32, {96, 10}), b2 = input(graph, "b2", DType::f32, {10}),
              x = input(graph, "x", DType::f32, {64, 48}), labels = input(graph, "labels", DType::i64, {64});
  const Value logits = ops::matmul(ops::relu(ops::matmul(x, w1) + b1), w2) + b2;
  return {ops::cross_entropy(logits, labels)};
}

}  // namespace

const std::vector<StageProgram>& stage_programs() {
  static const std::vector<StageProgram> programs = {{"softmax", softmax},
                                                     {"layernorm_gelu", layernorm_gelu},
                                                     {"rms_norm_gradient", rms_norm, {0, 1}},
                                                     {"dropout_add", dropout_add},
                                                     {"embedding_gradient", embedding, {0}},
                                                     {"mlp", mlp},
                                                     {"attention", attention},
                                                     {"training_step", two_layers, {0, 1, 2, 3}, 0.1}};
  return programs;
}

ir::Graph graph_of(const StageProgram& program) {
  Graph graph(program.name);
  std::vector<ir::NodeId> outputs;
  for (const Value& v : program.write(graph)) outputs.push_back(v.id);
  graph.set_outputs(outputs);
  if (program.differentiate.empty()) return graph;
  graph = passes::differentiate(graph, program.differentiate);
  if (program.descent == 0) return graph;
  outputs = graph.outputs();  // the loss, then the gradients
  for (std::size_t i = 0; i < program.differentiate.size(); ++i) {
    const Value weight{&graph, graph.inputs()[static_cast<std::size_t>(program.differentiate[i])]};
    outputs[i + 1] = (weight - Value{&graph, outputs[i + 1]} * program.descent).id;
  }
  graph.set_outputs(outputs);
  return graph;
}

}  // namespace tilewright::test
