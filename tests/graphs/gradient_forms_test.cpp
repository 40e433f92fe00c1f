// What lowering makes of attention's backward pass on a GPU, by its own choice.
#include "ops/composites.h"
#include "ops/ops.h"
#include "passes/graph/differentiate.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

namespace tilewright::test {
namespace {

using ir::Value;

constexpr Index kGptHeads = 16, kGptTime = 2048, kGptDepth = 64;

ir::Graph attention_gradient(DType dtype, const Shape& shape = {4, kGptHeads, kGptTime, kGptDepth},
                             std::optional<DType> products = {}) {
  const DType wide = products ? *products : dtype == DType::f64 ? dtype : DType::f32;
  ir::Graph graph("attention");
  const auto input = [&](const char* name) { return Value{&graph, graph.add_input(name, {dtype, shape})}; };
  const Value q = input("q"), k = input("k"), v = input("v"), weight = input("weight");
  const Value scores = ops::matmul(q, ops::swap_axes(k, 2, 3), wide) * 0.125;
  const Value out = ops::matmul(ops::cast(ops::softmax(scores), dtype), v, wide);
  graph.set_outputs({ops::sum(out * weight).id});
  return passes::differentiate(graph, {0, 1, 2});
}

TEST(GradientForms, AttentionIn16BitsStoresNoScoresAndMultipliesIn16Bits) {
  const passes::Compiled compiled = passes::run_pipeline(attention_gradient(DType::bf16), h200_target());
  std::string all = compiled.fusion.recomputing + "\n";
  for (const tile::PlanBuffer& buffer : compiled.plan.buffers)
    EXPECT_LE(buffer.elements, 4 * kGptHeads * kGptTime * kGptDepth) << "scores are stored";
  int dots = 0;
  for (std::size_t i = 0; i < compiled.plan.kernels.size(); ++i) {
    const tile::Kernel& kernel = compiled.plan.kernels[i];
    all += fmt::format("{}: matrix units {}\n", kernel.name, compiled.kernels[i].cost.dots.on_matrix_units);
    const int before = dots;
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind != tile::OpKind::dot) return;
      ++dots;
      for (const std::size_t side : {0, 1})
        EXPECT_EQ(kernel.type(op.operands[side]).dtype, DType::bf16) << kernel.name;
    });
    EXPECT_EQ(compiled.kernels[i].cost.dots.on_matrix_units, dots > before) << kernel.name;
    all += fmt::format("  {} dots\n", dots - before);
  }
  // Forward: scores and results; dQ: scores and dP; dV and dK, in one loop, the same. Each with the products
  // it ends in.
  EXPECT_EQ(dots, 2 + 3 + 4) << all;
}

// Scores of 16 bits over 352 keys are less than three times as large as queries and keys: computing them
// again is faster all the same.
TEST(GradientForms, ShortRowsOfNarrowScoresAreNotStored) {
  const Shape shape{22, 11, 352, 64};
  const passes::Compiled compiled =
      passes::run_pipeline(attention_gradient(DType::f16, shape, DType::f16), h200_target());
  for (const tile::PlanBuffer& buffer : compiled.plan.buffers)
    EXPECT_LE(buffer.elements, shape.size()) << "scores are stored: " << compiled.fusion.recomputing;
}

// Rounded are weights, the results' gradient (exact here), the scores' gradient, and what is stored: each by
// at most half a unit of bf16, 2^-9 of a term.
TEST(GradientForms, AttentionIn16BitsRoundsWhatItsProductsRead) {
  const Shape shape{1, 2, 128, 32};
  GraphRunner runner("reference");
  const passes::Compiled compiled = passes::run_pipeline(
      attention_gradient(DType::bf16, shape), runner.device->target(), {.recompute = Recompute::always});
  Random random(3);
  std::vector<ir::HostTensor> inputs, exact;
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(random_host({DType::bf16, shape}, {.low = -2, .high = 2}, random));
    exact.push_back(inputs.back());
    exact.back().type.dtype = DType::f64;
  }
  const auto got = runner.run(compiled, inputs);
  const auto want = ops::evaluate(attention_gradient(DType::f64, shape), exact);
  for (std::size_t o = 1; o < got.size(); ++o) {
    double apart = 0, largest = 0;
    for (std::size_t i = 0; i < want[o].f.size(); ++i) {
      apart = std::max(apart, std::abs(got[o].f[i] - want[o].f[i]));
      largest = std::max(largest, std::abs(want[o].f[i]));
    }
    EXPECT_LE(apart, 3 * 0x1p-9 * largest) << o;
  }
}

}  // namespace
}  // namespace tilewright::test
