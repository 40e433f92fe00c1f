// Programs of several products in one kernel: each multiplies the way round in which its result is needed
// there.
#include "support/h200_target.h"
#include "support/product_programs.h"
#include "support/random_graph.h"
#include "support/run_graph.h"

#include "ir/text.h"
#include "ops/composites.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

using ir::Graph;
using ir::Value;

class ProductFrames : public testing::Test {
 protected:
  void check(const Graph& graph) {
    const auto inputs = program_inputs(graph, 1);
    for (const tile::Target& target : {runner_.device->target(), h200_target()})
      for (Recompute recompute : {Recompute::by_cost, Recompute::always}) {
        const passes::Compiled compiled = passes::run_pipeline(graph, target, {.recompute = recompute});
        EXPECT_TRUE(compiled.taken_apart.empty());
        EXPECT_EQ(difference(runner_.run(compiled, inputs), reference_with_spread(graph, inputs, {})), "")
            << ir::print(graph);
      }
  }
  Value input(Graph& graph, DType dtype, const Shape& shape) {
    return {&graph, graph.add_input("v" + std::to_string(graph.inputs().size()), {dtype, shape})};
  }
  // The gradient of the sum of the squares of the gradients.
  Graph second(const Graph& loss, const std::vector<int>& wrt) {
    Graph first = passes::differentiate(loss, wrt);
    Value sum;
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      const Value g{&first, first.outputs()[1 + i]};
      sum = i == 0 ? ops::sum(g * g) : sum + ops::sum(g * g);
    }
    first.set_outputs({sum.id});
    return passes::differentiate(first, wrt);
  }
  GraphRunner runner_{"reference"};
};

TEST_F(ProductFrames, AProductOfAProductWithAResidualIsSummedOverTheBatch) {
  Graph graph("product");
  const Value a = input(graph, DType::f32, {3, 2, 2}), b = input(graph, DType::f32, {3, 2, 2});
  const Value m = ops::matmul(a, b);
  graph.set_outputs({ops::sum(ops::matmul(m, b) + m, {0}).id});
  check(graph);
  graph.set_outputs({ops::max(ops::matmul(m, b) * m, {0}).id});
  check(graph);
}

TEST_F(ProductFrames, SecondDerivativesOfAProductWithItsTranspose) {
  Graph graph("loss");
  const Value v = input(graph, DType::f64, {1, 6, 3});
  const Value b = ops::broadcast_to(v, {2, 6, 3});
  const Value q = ops::matmul(b, ops::swap_axes(b, -1, -2));
  graph.set_outputs({ops::sum(q * q).id});
  const Graph derived = second(graph, {0});
  check(derived);
  EXPECT_EQ(difference_from_slopes({Derivative::second, {0}, derived}, 1), "");
}

TEST_F(ProductFrames, AProductThatIsStoredAndSummedOverABroadcastBatch) {
  Graph graph("product");
  const Value v = input(graph, DType::f64, {1, 3, 3});
  const Value b = ops::broadcast_to(v, {2, 3, 3});
  const Value m = ops::matmul(v + ops::sum(b, {0}, ops::Keep::yes), ops::swap_axes(b, -1, -2));
  graph.set_outputs({ops::matmul(ops::sum(m, {0}, ops::Keep::yes), v).id, m.id});
  check(graph);
}

TEST_F(ProductFrames, ASumBesideAProductThatDoesNotVaryAlongItsRows) {
  Graph graph("loss");
  const Value v = input(graph, DType::f64, {2, 1});
  const Value m = ops::matmul(v, ops::swap_axes(v, 0, 1));
  graph.set_outputs({(ops::sum(m * m) + ops::sum(v * ops::sin(v))).id});
  check(passes::differentiate(graph, {0}));
}

TEST_F(ProductFrames, ScalesOfF64OnNarrowerOperands) {
  for (DType dtype : {DType::f8e4m3, DType::bf16, DType::f32, DType::i8})
    for (Index k : {64, 100, 256}) {
      Graph graph("product");
      const Value a = input(graph, dtype, {4, k}),
                  scale_a = input(graph, DType::f64, {4, ceil_div(k, ops::kScaleBlock)});
      const Value b = input(graph, dtype, {k, 6}),
                  scale_b = input(graph, DType::f32, {ceil_div(k, ops::kScaleBlock), 1});
      const Value product = ops::scaled_matmul(a, scale_a, b, scale_b);
      EXPECT_EQ(product.dtype(), DType::f64);
      graph.set_outputs({product.id});
      check(graph);
    }
}

}  // namespace
}  // namespace tilewright::test
