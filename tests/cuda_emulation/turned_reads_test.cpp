// What lies closer along the result's rows than along its columns is read that way and turned on chip: every
// other element, parts of a concat, and what a pad surrounds, as well as whole blocks.
#include "cuda_emulation/emulated_cuda.h"

#include "ops/composites.h"
#include "passes/pipeline.h"
#include "support/graph_check.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

using ir::Value;

struct Read {
  const char* name;
  Shape shape;
  Value (*view)(Value x);
};

// Large enough that blocks are turned through shared memory.
const Read kReads[] = {
    {"transposed", {400, 410}, [](Value x) { return ops::transpose(x, {1, 0}); }},
    {"every other column",
     {400, 820},
     [](Value x) { return ops::slice_axis(ops::transpose(x, {1, 0}), 0, {.step = 2}); }},
    {"backwards", {400, 410}, [](Value x) { return ops::flip(ops::transpose(x, {1, 0}), {0}); }},
    {"two parts",
     {400, 410},
     [](Value x) { return ops::transpose(ops::concat({ops::neg(x), x}, 1), {1, 0}); }},
    {"padded", {400, 410}, [](Value x) { return ops::transpose(ops::pad_axis(x, 1, 3, 5, 0), {1, 0}); }},
    {"axes reversed", {50, 13, 17, 16}, [](Value x) { return ops::transpose(x, {3, 2, 1, 0}); }},
};

TEST(TurnedReads, HaveTheValuesOfTheirGraphs) {
  test::GraphCheck check({.device = "emulated:sm_90a"});
  const auto target = open_emulated_cuda("sm_90a").value()->target();
  for (const Read& read : kReads)
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
      SCOPED_TRACE(std::string(read.name) + ", " + std::string(name(dtype)));
      ir::Graph graph("turned");
      const Value y = read.view({&graph, graph.add_input("x", {dtype, read.shape})});
      const Value bias{&graph, graph.add_input("b", {dtype, {y.shape()[y.shape().rank() - 1]}})};
      graph.set_outputs({ops::add(y, ops::broadcast_to(bias, y.shape())).id});
      EXPECT_EQ(check.problem_with(graph, 1), "");
      const passes::Compiled compiled = passes::run_pipeline(graph, target);
      ASSERT_EQ(compiled.plan.kernels.size(), 1u);
      EXPECT_NE(tile::print(compiled.plan.kernels[0]).find("transpose"), std::string::npos);
    }
}

// The mask of a part of a part is a choice between masks.
TEST(TurnedReads, PartsOfPartsAreTurnedAsWell) {
  test::GraphCheck check({.device = "emulated:sm_90a"});
  const auto target = open_emulated_cuda("sm_90a").value()->target();
  ir::Graph graph("turned");
  const Value x{&graph, graph.add_input("x", {DType::f32, {410, 300}})};
  const Value inner = ops::abs(ops::concat({ops::neg(x), x}, 1));
  graph.set_outputs({ops::transpose(ops::concat({inner, x}, 1), {1, 0}).id});
  EXPECT_EQ(check.problem_with(graph, 1), "");
  const passes::Compiled compiled = passes::run_pipeline(graph, target);
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  const std::string text = tile::print(compiled.plan.kernels[0]);
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("= gather "), 3) << text;
  EXPECT_EQ(count("= transpose "), 3) << text;
}

}  // namespace
}  // namespace tilewright::emulation
