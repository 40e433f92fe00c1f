// Reductions of what has no elements, compiled.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "ops/ops.h"
#include "support/run_graph.h"

namespace tilewright::test {
namespace {

TEST(EmptyGraphs, AConcatenationOfNothingIsReducedToTheIdentity) {
  const auto graph = ir::parse(R"(graph @main(%x0: f32[3,0]) -> (f32[], f32[]) {
  %1 = concat %x0, %x0 {axis=1} : f32[3,0]
  %2 = exp %1 : f32[3,0]
  %3 = sum %2 {axes=[0,1]} : f32[]
  %4 = prod %2 {axes=[0,1]} : f32[]
  return %3, %4
})",
                               ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  GraphRunner runner("reference");
  const passes::Compiled compiled = passes::run_pipeline(*graph, runner.device->target(), {});
  const std::vector<ir::HostTensor> inputs = {{.type = graph->type(graph->inputs()[0])}};
  const std::vector<ir::HostTensor> got = runner.run(compiled, inputs);
  EXPECT_EQ(got.at(0).f, std::vector<double>{0});
  EXPECT_EQ(got.at(1).f, std::vector<double>{1});
}

// Sums of products of depth 0, fused in each form: they add up the product's zeros, not nothing.
TEST(EmptyGraphs, ProductsOfDepthZeroAreZerosToWhatReadsThem) {
  const auto graph =
      ir::parse(R"(graph @main(%x0: f32[3,0,16], %x1: f32[3,0,24]) -> (f32[], f32[], f32[3,16], f32[]) {
  %1 = transpose %x0 {perm=[0,2,1]} : f32[3,16,0]
  %2 = matmul %1, %x1 : f32[3,16,24]
  %3 = sum %2 {axes=[0,1,2]} : f32[]
  %4 = max %2 {axes=[0,1,2]} : f32[]
  %5 = max %2 {axes=[2]} : f32[3,16]
  %6 = exp %2 : f32[3,16,24]
  %7 = sum %6 {axes=[0,1,2]} : f32[]
  return %3, %4, %5, %7
})",
                ops::all_ops());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::vector<ir::HostTensor> inputs = {{.type = graph->type(graph->inputs()[0])},
                                              {.type = graph->type(graph->inputs()[1])}};
  for (const bool simplify : {true, false})
    for (const char* device : {"reference", "cpu"}) {
      GraphRunner runner(device);
      const passes::Compiled compiled =
          passes::run_pipeline(*graph, runner.device->target(), {.simplify = simplify});
      const std::vector<ir::HostTensor> got = runner.run(compiled, inputs);
      EXPECT_EQ(got.at(0).f, std::vector<double>{0}) << device;
      EXPECT_EQ(got.at(1).f, std::vector<double>{0}) << device;
      EXPECT_EQ(got.at(2).f, std::vector<double>(48, 0)) << device;
      EXPECT_EQ(got.at(3).f, std::vector<double>{3 * 16 * 24}) << device;
    }
}

// Zero times infinity, and zero through zero: sums of such a row are no zeros that a loop may leave out.
TEST(EmptyGraphs, ZerosMeetConstantsThatMakeThemNaN) {
  for (const char* step : {"mul %1, %2", "mul %2, %1", "div %1, %3", "mul %1, %4"}) {
    const auto graph = ir::parse(fmt::format(R"(graph @main(%x0: f64[2,0,2,0]) -> f64[2] {{
  %1 = sum %x0 {{axes=[1,3]}} : f64[2,2]
  %2 = constant {{dtype=f64, shape=[2,2], value=inf}} : f64[2,2]
  %3 = constant {{dtype=f64, shape=[2,2], value=0.0}} : f64[2,2]
  %4 = constant {{dtype=f64, shape=[2,2], value=nan}} : f64[2,2]
  %5 = {} : f64[2,2]
  %6 = sum %5 {{axes=[0]}} : f64[2]
  return %6
}})",
                                             step),
                                 ops::all_ops());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    GraphRunner runner("reference");
    const passes::Compiled compiled = passes::run_pipeline(*graph, runner.device->target(), {});
    const std::vector<ir::HostTensor> inputs = {{.type = graph->type(graph->inputs()[0])}};
    const std::vector<ir::HostTensor> got = runner.run(compiled, inputs);
    for (double v : got.at(0).f) EXPECT_TRUE(std::isnan(v)) << step << " gives " << v;
  }
}

}  // namespace
}  // namespace tilewright::test
