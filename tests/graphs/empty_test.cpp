// Reductions of what has no elements, compiled.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tilewright::test
