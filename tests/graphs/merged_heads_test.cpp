// Heads that become columns: what computes them stores them as the next product reads them.
#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "support/h200_target.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {
namespace {

using ir::Value;

constexpr Index kMergedBatch = 3, kMergedHeads = 4, kMergedTime = 96, kMergedDepth = 64, kMergedColumns = 128;

class Inputs {
 public:
  explicit Inputs(ir::Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}
  Value operator()(const char* name, const Shape& shape) {
    return {&graph_, graph_.add_input(name, {dtype_, shape})};
  }

 private:
  ir::Graph& graph_;
  DType dtype_;
};

// Attention, its heads put side by side, a product, and the gradient of that product's weights.
ir::Graph projected(DType dtype, Index batch = kMergedBatch, Index time = kMergedTime) {
  ir::Graph g("projected");
  Inputs input(g, dtype);
  const Shape heads{batch, kMergedHeads, time, kMergedDepth};
  const Value q = input("q", heads), k = input("k", heads), v = input("v", heads),
              w = input("w", {kMergedHeads * kMergedDepth, kMergedColumns}),
              dy = input("dy", {batch * time, kMergedColumns});
  const Value mixed = ops::attend(ops::attention_scores(q, k, 0.125), v, {.result = dtype}).out;
  const Value rows = ops::reshape(ops::swap_axes(mixed, 1, 2), {batch * time, kMergedHeads * kMergedDepth});
  g.set_outputs({ops::matmul(rows, w, dtype).id, ops::matmul(ops::swap_axes(rows, 0, 1), dy, dtype).id});
  return g;
}

std::vector<std::size_t> loops_of_products(const passes::Compiled& c) {
  std::vector<std::size_t> loops;
  for (const tile::Kernel& kernel : c.plan.kernels) {
    std::size_t count = 0, dots = 0;
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      count += op.kind == tile::OpKind::loop ? 1 : 0;
      dots += op.kind == tile::OpKind::dot ? 1 : 0;
    });
    if (dots == 1) loops.push_back(count);
  }
  return loops;
}

TEST(MergedHeads, AreStoredAsProductsReadThem) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const passes::Compiled c = passes::run_pipeline(projected(dtype, 8, 1024), h200_target());
    EXPECT_EQ(loops_of_products(c), (std::vector<std::size_t>{1, 1})) << name(dtype);
    EXPECT_EQ(std::count_if(c.plan.steps.begin(), c.plan.steps.end(),
                            [](const tile::PlanStep& s) { return s.kind == tile::PlanStep::Kind::copy; }),
              0);
  }
}

// A product of (batch, time, columns), and its weights' gradient, whose rows are batch and time: two shapes
// of one value, which is stored once.
TEST(MergedHeads, ReadByTwoShapesAreStoredOnce) {
  const Index batch = 8, time = 1024, columns = kMergedHeads * kMergedDepth;
  ir::Graph g("shapes");
  Inputs input(g, DType::bf16);
  const Value x = input("x", {batch, kMergedHeads, time, kMergedDepth}),
              w = input("w", {columns, kMergedColumns}), dy = input("dy", {batch * time, kMergedColumns});
  const Value rows = ops::reshape(ops::swap_axes(-x, 1, 2), {batch, time, columns});
  const Value by_column = ops::reshape(ops::transpose(rows, {2, 0, 1}), {columns, batch * time});
  g.set_outputs({ops::matmul(rows, w, DType::bf16).id, ops::matmul(by_column, dy, DType::bf16).id});
  const passes::Compiled c = passes::run_pipeline(g, h200_target());
  std::size_t written = 0;  // in memory of its own
  for (const tile::PlanBuffer& b : c.plan.buffers)
    written += b.role == tile::PlanBuffer::Role::temporary && b.elements == batch * time * columns ? 1 : 0;
  EXPECT_EQ(written, 1U);
}

// What the memory of an input's heads is, nobody chooses; nor are rows put into memory that a table picks.
TEST(MergedHeads, OfInputsAreReadAsTheyLie) {
  ir::Graph g("inputs");
  Inputs input(g, DType::bf16);
  const Value x = input("x", {8, kMergedHeads, 1024, kMergedDepth}),
              w = input("w", {kMergedHeads * kMergedDepth, kMergedColumns});
  g.set_outputs({ops::matmul(ops::reshape(ops::swap_axes(x, 1, 2), {8 * 1024, kMergedHeads * kMergedDepth}),
                             w, DType::bf16)
                     .id});
  EXPECT_EQ(passes::run_pipeline(g, h200_target()).plan.kernels.size(), 1U);
}

std::size_t kernels_behind(const std::vector<Index>& order) {
  ir::Graph g("exchanged");
  Inputs input(g, DType::bf16);
  const Value a = input("a", {4, 256, 64}), b = input("b", {4, 64, 128});
  g.set_outputs({ops::cast(ops::transpose(-ops::matmul(a, b, DType::bf16), order), DType::f32).id});
  return passes::run_pipeline(g, h200_target()).plan.kernels.size();
}

// Stores of a tile's rows; columns would be scattered, and are turned around by a kernel of their own.
TEST(MergedHeads, ResultsWithExchangedRowsAreOneKernel) {
  EXPECT_EQ(kernels_behind({0, 1, 2}), 1U);
  EXPECT_EQ(kernels_behind({1, 0, 2}), 1U);
  EXPECT_EQ(kernels_behind({0, 2, 1}), 2U);
}

class MergedHeadsOn : public testing::TestWithParam<const char*> {};

TEST_P(MergedHeadsOn, MeanWhatTheyMeant) {
  const ir::Graph g = projected(DType::f32);
  Random random(5);
  std::vector<ir::HostTensor> in;
  for (ir::NodeId id : g.inputs()) in.push_back(random_host(g.type(id), {.low = -1, .high = 1}, random));
  GraphRunner runner(GetParam());
  const std::vector<ir::HostTensor> want = ops::evaluate(g, in);
  for (const tile::Target& target : {runner.device->target(), h200_target()}) {
    if (target.kind == tile::TargetKind::cuda && std::string(GetParam()) != "reference") continue;
    const auto got = runner.run(passes::run_pipeline(g, target), in);
    for (std::size_t o = 0; o < want.size(); ++o)
      for (std::size_t e = 0; e < want[o].f.size(); ++e)
        // Sums of at most 288 terms below 1, whose partial sums stay below 20: 288 · 20 · 2⁻²⁵.
        ASSERT_LE(std::abs(got[o].f[e] - want[o].f[e]), 1.8e-4) << o << " " << e;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MergedHeadsOn, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
