// What every stage makes of a few programs: the graph, what is fused, tile IR, printed C++ and CUDA C++. With
// TILEWRIGHT_UPDATE set the files in stages/ are rewritten instead; the change is read as a diff.
#include "backends/cpu/candidates.h"
#include "backends/cpu/machine/fitted.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "runtime/device.h"
#include "support/stage_programs.h"

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

using test::graph_of;

// One machine for all: a target read from this one would make the files its own.
tile::Target cpu_target() {
  tile::Target target{.kind = tile::TargetKind::cpu, .name = "golden", .arch = "baseline", .vector_bytes = 16};
  cpu::fill_fitted(target);
  return target;
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

void expect_golden(const test::StageProgram& program, const std::string& stage, const std::string& text) {
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

class Stages : public ::testing::TestWithParam<test::StageProgram> {};

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

INSTANTIATE_TEST_SUITE_P(Programs, Stages, ::testing::ValuesIn(test::stage_programs()),
                         [](const auto& program) { return std::string(program.param.name); });

}  // namespace
}  // namespace tilewright
