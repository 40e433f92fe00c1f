// Products of weights under a precision of 8 bits: the kernels that become of them take the tensor cores' 8
// bits where there are any, and compute what the rewritten graph says, there and where there are none.
#include "cuda_emulation/emulated_cuda.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/narrow_products.h"
#include "passes/pipeline.h"
#include "support/host_values.h"
#include "support/run_graph.h"
#include "tensor/precision_text.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace tilewright::emulation {
namespace {

using ir::Graph;
using ir::Value;

// The loss of a hidden layer on (batch, time, width), and its gradient by both weights and the input.
Graph hidden_layer(const Shape& x_shape, Index wide) {
  Graph g("hidden_layer");
  const auto input = [&](const char* name, const Shape& shape) {
    return Value{&g, g.add_input(name, {DType::f32, shape})};
  };
  const Index width = x_shape[x_shape.rank() - 1];
  const Value w = input("w", {width, wide}), v = input("v", {wide, width}), x = input("x", x_shape);
  const Value y = ops::matmul(ops::relu(ops::matmul(x, w)), v);
  g.set_outputs({ops::mean(y * y).id});
  return passes::differentiate(g, {0, 1, 2});
}

struct Case {
  const char* architecture;
  Precision precision;
};

class EmulatedFp8 : public testing::TestWithParam<Case> {};

// Sizes that no block divides, in the depth of every product.
TEST_P(EmulatedFp8, ComputesWhatTheRewrittenGraphSays) {
  const auto [architecture, precision] = GetParam();
  test::GraphRunner runner(std::string("emulated:") + architecture);
  test::Random random(3);
  for (const Shape& shape : {Shape{2, 24, 40}, Shape{70, 131}}) {
    SCOPED_TRACE(to_string(shape));
    const Graph g = hidden_layer(shape, 72);
    std::vector<ir::HostTensor> in;
    for (const ir::NodeId id : g.inputs())
      in.push_back(test::random_host(g.type(id), {.low = -0.7, .high = 0.7}, random));
    const passes::Compiled compiled =
        passes::run_pipeline(g, runner.device->target(), {.precision = precision});
    const Graph oracle = test::oracle_of(passes::with_narrow_products(g, precision), compiled);
    EXPECT_EQ(test::difference_from(oracle, in, runner.run(compiled, in), {.runs = 500}), "");
  }
}

// Large ones, which are not run here: every product is the tensor cores', of 8 bits where they have such,
// else of the same values in bf16.
TEST_P(EmulatedFp8, TakesTensorCores) {
  const auto [architecture, precision] = GetParam();
  const bool has_8_bits = std::string(architecture) == "sm_90a";
  const auto backend = open_emulated_cuda(architecture).value();
  const passes::Compiled compiled =
      passes::run_pipeline(hidden_layer({4, 512, 768}, 3072), backend->target(), {.precision = precision});
  int products = 0;
  for (const ir::Node& n : compiled.graph.nodes()) {
    if (n.op->kind != ir::OpClass::matmul) continue;
    EXPECT_EQ(is_f8(compiled.graph.type(n.operands[0]).dtype), has_8_bits);
  }
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const std::string text = tile::print(kernel);
    if (text.find(" = dot ") == std::string::npos) continue;
    ++products;
    const auto candidates = backend->candidates(kernel);
    const auto best = std::find_if(candidates.begin(), candidates.end(),
                                   [](const backends::Candidate& c) { return c.refusal.empty(); });
    ASSERT_NE(best, candidates.end());
    const std::string schedule = tile::to_string(best->schedule);
    EXPECT_TRUE(schedule.starts_with(has_8_bits ? "wgmma" : "mma")) << schedule << "\n" << text;
  }
  EXPECT_EQ(products, 6);
  // What explain() says: the values are of 8 bits, in whatever they are multiplied.
  const std::string whole = detail::precision_text(compiled.graph, precision);
  EXPECT_NE(whole.find(": 6 products of 8-bit floats"), std::string::npos) << whole;
  std::vector<ir::NodeId> all(static_cast<std::size_t>(compiled.graph.size()));
  std::iota(all.begin(), all.end(), 0);
  const std::string types = detail::types_text(compiled.graph, all);
  EXPECT_NE(types.find(has_8_bits ? "matmul f8e4m3, sums f32" : "matmul f8e4m3 as bf16, sums f32"),
            std::string::npos)
      << types;
}

INSTANTIATE_TEST_SUITE_P(Architectures, EmulatedFp8,
                         testing::Values(Case{"sm_90a", Precision::fp8}, Case{"sm_90a", Precision::fp8_block},
                                         Case{"sm_80", Precision::fp8}, Case{"sm_80", Precision::fp8_block}),
                         [](const auto& info) {
                           return std::string(info.param.architecture) +
                                  (info.param.precision == Precision::fp8 ? "_tensor" : "_block");
                         });

}  // namespace
}  // namespace tilewright::emulation
