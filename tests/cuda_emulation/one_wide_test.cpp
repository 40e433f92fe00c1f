// Programs with a single row or column in a product, as a GPU runs them: those that an H200 refused or got
// wrong, and random ones of their kind.
#include "cuda_emulation/kernel_expect.h"
#include "ops/attention.h"
#include "ops/composites.h"
#include "passes/graph/differentiate.h"
#include "support/draws.h"
#include "support/graph_check.h"
#include "support/random_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tilewright::emulation {
namespace {

ir::Value wide_input(ir::Graph& graph, const char* name, DType dtype, const Shape& shape) {
  return {&graph, graph.add_input(name, {dtype, shape})};
}

// The sum of these and its gradients with respect to the inputs numbered so.
ir::Graph gradient(ir::Graph& graph, const std::vector<ir::Value>& sums, const std::vector<int>& wrt) {
  ir::Value loss = ops::sum(sums[0]);
  for (std::size_t i = 1; i < sums.size(); ++i) loss = loss + ops::sum(sums[i]);
  graph.set_outputs({loss.id});
  return passes::differentiate(graph, wrt);
}

class OneWide : public ::testing::TestWithParam<const char*> {
 protected:
  OneWide() : check_({.device = std::string("emulated:") + GetParam()}) {}
  void expect_right(const ir::Graph& graph) { EXPECT_EQ(check_.problem_with(graph, 3), ""); }
  test::GraphCheck check_;
};

// A matrix times a vector is stored beside values of the matrix's rows.
TEST_P(OneWide, AColumnOfProductsIsSpreadLikeRows) {
  ir::Graph g("b2b");
  const ir::Value v0 = wide_input(g, "v0", DType::f32, {3, 9, 2}), v1 = wide_input(g, "v1", DType::i8, {2});
  const ir::Value least = ops::argmin(ops::mean(v0, {0}, ops::Keep::yes), 2, ops::Keep::yes);
  const ir::Value product = ops::matmul(ops::cast(least, DType::f32) + v0, ops::cast(v1, DType::f32));
  g.set_outputs({ops::abs(product).id, ops::mul(v1, 3).id, ops::elu(v0).id});
  expect_right(g);
}

TEST_P(OneWide, ProductsOfSingleColumnsFollowOneAnother) {
  ir::Graph g("grad");
  const ir::Value v0 = wide_input(g, "v0", DType::bf16, {7, 4, 3, 4, 1}),
                  v1 = wide_input(g, "v1", DType::bf16, {4, 1, 4, 1});
  const ir::Value v2 = ops::stack({v1, v1}, 4), v3 = v2 * v2;
  const ir::Value v4 = ops::slice_axis(v3, 3, {.start = -3, .stop = 3, .step = 2});
  const ir::Value v6 = v3 * v4;
  const ir::Value v7 = ops::concat({v3, ops::rms_norm(v4, std::nullopt), v6}, 1);
  const ir::Value v10 = ops::matmul(ops::matmul(v7, ops::swap_axes(v6, -1, -2)), v3);
  expect_right(gradient(g, {v0, v10, ops::abs(v3)}, {0}));
}

TEST_P(OneWide, AttentionOfOneDepth) {
  ir::Graph g("attention");
  const ir::Value q = wide_input(g, "q", DType::f32, {3, 3, 5, 1}),
                  k = wide_input(g, "k", DType::f32, {3, 3, 300, 1}),
                  v = wide_input(g, "v", DType::f32, {3, 3, 300, 4}),
                  of_q = wide_input(g, "of_q", DType::i32, {5}),
                  of_k = wide_input(g, "of_k", DType::i32, {300});
  const Shape all{5, 300};
  const ir::Value same =
      ops::eq(ops::broadcast_to(ops::reshape(of_q, {5, 1}), all), ops::broadcast_to(of_k, all));
  const ir::Value out = ops::attend(ops::attention_scores(q, k, 1), v, {.mask = same}).out;
  expect_right(gradient(g, {out * out}, {0, 1, 2}));
}

// Its values have one column; the logarithms of its sums are another result.
TEST_P(OneWide, AttentionToOneColumn) {
  ir::Graph g("attention");
  const ir::Value q = wide_input(g, "q", DType::bf16, {3, 6, 8, 8}),
                  k = wide_input(g, "k", DType::bf16, {3, 3, 16, 8}),
                  v = wide_input(g, "v", DType::bf16, {3, 3, 16, 1});
  const Shape all{8, 16};
  const ir::Value mask = ops::le(ops::iota(g, all, 1), ops::iota(g, all, 0) + 3);
  const ops::Attended y =
      ops::attend(ops::attention_scores(q, k, 1 / std::sqrt(8.0)), v, {.mask = mask, .result = DType::bf16});
  g.set_outputs({y.out.id, y.lse.id});
  expect_right(g);
}

// Numbers outside the groups give zeros, whatever the padding of odd sizes holds.
TEST_P(OneWide, GroupsOfOddSizes) {
  ir::Graph g("groups");
  const ir::Value x = wide_input(g, "x", DType::f16, {231, 33}),
                  w = wide_input(g, "w", DType::f16, {2, 33, 5}), ids = wide_input(g, "ids", DType::i64, {7});
  g.set_outputs({ops::grouped_matmul(x, w, ids).id});
  expect_right(g);
}

TEST_P(OneWide, GradientOfALogarithmOfSums) {
  ir::Graph g("grad");
  const ir::Value v0 = wide_input(g, "v0", DType::f32, {1, 4, 2, 4}),
                  v1 = wide_input(g, "v1", DType::f32, {1, 4, 2, 4}),
                  v2 = wide_input(g, "v2", DType::f32, {1, 1, 2, 4});
  const ir::Value t = ops::tanh(ops::logsumexp(ops::maximum(v0, v0), {}, ops::Keep::yes));
  expect_right(gradient(g, {v2 * v2, ops::abs(v1), t * ops::sin(t)}, {0, 1, 2}));
}

// What is listed is printed: the runtime takes the first of a list, the tuner any.
TEST_P(OneWide, EveryListedScheduleIsPrinted) {
  const std::uint64_t graphs = test::draws(200);
  const auto backend = open_emulated_cuda(GetParam()).value();
  int printed = 0;
  for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
    const ir::Graph graph = test::random_graph(test::graph_of_seed(seed, test::GraphFamily::tiny));
    for (const tile::Kernel& kernel : passes::run_pipeline(graph, backend->target()).plan.kernels)
      for (const backends::Candidate& c : backend->candidates(kernel)) {
        if (!c.refusal.empty()) continue;
        const auto source = backend->print(kernel, c.schedule);
        EXPECT_TRUE(source) << "seed " << seed << ", " << kernel.name << " [" << to_string(c.schedule)
                            << "]: " << source.error().message;
        ++printed;
      }
  }
  EXPECT_GT(printed, static_cast<int>(5 * graphs));
}

// A row of products that is stored as a column, in a random kernel that an H200 refused.
TEST_P(OneWide, ARowOfProductsIsSpreadLikeRows) {
  const auto backend = open_emulated_cuda(GetParam()).value();
  const test::RandomKernel random = test::random_kernel(31406, {.steps = 8});
  test::ParityOptions options = as_printed();
  options.scalars = random.scalars;
  emulation::expect_right(*backend, random.kernel, backend->candidates(random.kernel).at(0).schedule,
                          options);
}

// More: graph_fuzz --device emulated:sm_90a --family tiny --count 5000
TEST_P(OneWide, RandomGraphs) {
  const std::uint64_t graphs = test::draws(30);
  for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
    const test::GraphCase drawn = test::graph_case(test::graph_of_seed(seed, test::GraphFamily::tiny));
    EXPECT_EQ(check_.problem_with(drawn.graph, seed), "") << describe(drawn, "graph_fuzz --family tiny");
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, OneWide, ::testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::emulation
