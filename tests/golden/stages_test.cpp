// What every stage makes of a few programs: the graph, what is fused, tile IR, printed C++ and CUDA C++. With
// TILEWRIGHT_UPDATE set the files in stages/ are rewritten instead; the change is read as a diff.
#include "backends/cpu/candidates.h"
#include "ir/text.h"
#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "passes/pipeline.h"
#include "runtime/device.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright {
namespace {

using ir::Value;

struct Inputs {
  ir::Graph& graph;
  Value operator()(const char* name, DType dtype, const Shape& shape) const {
    return {&graph, graph.add_input(name, {dtype, shape})};
  }
};

// Programs for one reason each: rows in registers; a broadcast vector and narrow storage; two results and a
// reduction of rows into columns; random bits; a gather and its scatter; products with an epilogue.
struct Program {
  const char* name;
  std::vector<Value> (*write)(const Inputs& input);
  std::vector<int> differentiate = {};
};

const Program kPrograms[] = {
    {"softmax",
     [](const Inputs& input) { return std::vector{ops::softmax(input("x", DType::f32, {64, 1000}))}; }},
    {"layernorm_gelu",
     [](const Inputs& input) {
       const Value x = input("x", DType::bf16, {64, 768}), gamma = input("gamma", DType::f32, {768}),
                   beta = input("beta", DType::f32, {768});
       return std::vector{
           ops::cast(ops::gelu(ops::layer_norm(ops::cast(x, DType::f32), gamma, beta)), DType::bf16)};
     }},
    {"rms_norm_gradient",
     [](const Inputs& input) {
       const Value x = input("x", DType::f32, {64, 256}), gamma = input("gamma", DType::f32, {256});
       return std::vector{ops::sum(ops::square(ops::rms_norm(x, gamma)))};
     },
     {0, 1}},
    {"dropout_add",
     [](const Inputs& input) {
       const Value x = input("x", DType::f32, {32, 512}), residual = input("residual", DType::f32, {32, 512});
       return std::vector{ops::dropout(x, input("seed", DType::i64, {}), {.p = 0.1}) + residual};
     }},
    {"embedding_gradient",
     [](const Inputs& input) {
       const Value table = input("table", DType::f32, {100, 64}), index = input("index", DType::i64, {48});
       return std::vector{ops::sum(ops::square(ops::embedding(table, index)))};
     },
     {0}},
    {"mlp", [](const Inputs& input) {
       const Value x = input("x", DType::f32, {32, 48}), w = input("w", DType::f32, {48, 96}),
                   b = input("b", DType::f32, {96});
       return std::vector{ops::gelu(ops::matmul(x, w) + b, ops::Gelu::tanh)};
     }}};

ir::Graph graph_of(const Program& program) {
  ir::Graph graph(program.name);
  std::vector<ir::NodeId> outputs;
  for (const Value& v : program.write({graph})) outputs.push_back(v.id);
  graph.set_outputs(outputs);
  return program.differentiate.empty() ? graph : passes::differentiate(graph, program.differentiate);
}

// One machine for all: a target read from this one would make the files its own.
tile::Target cpu_target() {
  return {.kind = tile::TargetKind::cpu, .name = "golden", .arch = "baseline", .vector_bytes = 16};
}

std::string fused_text(const passes::Compiled& compiled) {
  std::string text = ir::print(compiled.graph);
  for (std::size_t i = 0; i < compiled.fusion.groups.size(); ++i)
    text += fmt::format("kernel {}: %{}\n", i, fmt::join(compiled.fusion.groups[i].nodes, " %"));
  for (const passes::NotFused& n : compiled.fusion.not_fused)
    text += fmt::format("not fused: %{} and %{}: {}\n", n.producer, n.consumer, passes::explain(n.refusal));
  return text;
}

std::string tile_text(const tile::Plan& plan) {
  std::string text;
  for (const tile::Kernel& kernel : plan.kernels) text += tile::print(kernel) + "\n";
  return text;
}

void expect_golden(const Program& program, const std::string& stage, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(TW_TEST_FOLDER) / "stages" / program.name / (stage + ".txt");
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str())
      << path << " differs; if the change is meant, `make golden` rewrites it; read the diff";
}

class Stages : public ::testing::TestWithParam<Program> {};

TEST_P(Stages, GraphAndFusion) {
  const ir::Graph graph = graph_of(GetParam());
  expect_golden(GetParam(), "1_graph", ir::print(graph));
  expect_golden(GetParam(), "2_fused", fused_text(passes::run_pipeline(graph, cpu_target())));
}

TEST_P(Stages, TileIrAndPrintedCpp) {
  const passes::Compiled compiled = passes::run_pipeline(graph_of(GetParam()), cpu_target());
  expect_golden(GetParam(), "3_tile", tile_text(compiled.plan));
  auto device = runtime::Device::open("cpu", {.threads = 1, .isa = "baseline"});
  ASSERT_TRUE(device.ok()) << device.error().message;
  std::string text;
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const auto candidates = cpu::list_candidates(kernel, cpu_target());
    ASSERT_FALSE(candidates.empty());
    text += (*device)->backend().print(kernel, candidates.front().schedule).value().text + "\n";
  }
  expect_golden(GetParam(), "4_cpu", text);
}

TEST_P(Stages, PrintedCuda) {
  auto device = runtime::Device::open("cuda", {.compile_only = "sm_90a"});
  ASSERT_TRUE(device.ok()) << device.error().message;
  const backends::Backend& backend = (*device)->backend();
  const passes::Compiled compiled = passes::run_pipeline(graph_of(GetParam()), backend.target());
  std::string text;
  for (const tile::Kernel& kernel : compiled.plan.kernels)
    text += backend.print(kernel, backend.candidates(kernel).front().schedule).value().text + "\n";
  expect_golden(GetParam(), "5_cuda", text);
}

INSTANTIATE_TEST_SUITE_P(Programs, Stages, ::testing::ValuesIn(kPrograms),
                         [](const auto& program) { return std::string(program.param.name); });

}  // namespace
}  // namespace tilewright
