// What a GPU would run for matmuls of sizes that break tilings: the printed kernels, emulated, against the
// interpreter.
#include "cuda_emulation/emulated_cuda.h"

#include "ops/composites.h"
#include "passes/pipeline.h"
#include "support/kernel_check.h"
#include "support/product_graphs.h"

#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

TEST(EmulatedProducts, KernelsOfEveryFormMatchTheReference) {
  auto backend = open_emulated_cuda("sm_90a").value();
  int dots = 0, shared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    test::ProductGraph product = test::random_product(seed);
    if (product.m * product.n * product.k > 1 << 20) product.k = std::min<Index>(product.k, 512);
    const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), backend->target());
    shared += compiled.plan.kernels.size() > 1 ? 1 : 0;
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      tile::for_each_op(kernel.body,
                        [&](const tile::Op& op) { dots += op.kind == tile::OpKind::dot ? 1 : 0; });
      int taken = 0;
      for (const backends::Candidate& c : backend->candidates(kernel)) {
        if (!c.refusal.empty() || taken == 2) continue;
        const auto r = testing::check_kernel(
            *backend, kernel, c.schedule, {.odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}});
        EXPECT_TRUE(r.problem.empty()) << to_string(product) << ": " << r.problem;
        taken += r.refused.empty() ? 1 : 0;
      }
      EXPECT_GT(taken, 0) << to_string(product) << " " << kernel.name << ": no schedule";
    }
  }
  EXPECT_GT(dots, 5);
  EXPECT_GT(shared, 0);
}

// silu(x · a) * (x · b): no extent is a whole number of blocks.
ir::Graph gated(Index rows, Index depth, Index columns) {
  ir::Graph graph("gated");
  const auto input = [&](const char* name, const Shape& shape) {
    return ir::Value{&graph, graph.add_input(name, {DType::bf16, shape})};
  };
  const ir::Value x = input("x", {rows, depth}), a = input("a", {depth, columns}),
                  b = input("b", {depth, columns});
  const ir::Value gate = ops::matmul(x, a, DType::f32), up = ops::matmul(x, b, DType::f32);
  graph.set_outputs({ops::cast(ops::silu(gate) * up, DType::bf16).id});
  return graph;
}

TEST(EmulatedProducts, AGateOfTwoProductsIsOneLoopOverTheirOperand) {
  auto backend = open_emulated_cuda("sm_90a").value();
  tile::Target target = backend->target();
  target.units = 2;  // which the programs fill
  const passes::Compiled compiled = passes::run_pipeline(gated(300, 200, 264), target);
  ASSERT_EQ(compiled.plan.kernels.size(), 1);
  const tile::Kernel& kernel = compiled.plan.kernels[0];
  int taken = 0;
  for (const backends::Candidate& c : backend->candidates(kernel)) {
    if (!c.refusal.empty() || c.schedule.dot != tile::DotUnit::wgmma) continue;
    ++taken;
    EXPECT_GT(c.schedule.stages, 2);
    const auto r = testing::check_kernel(*backend, kernel, c.schedule,
                                         {.odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}});
    EXPECT_TRUE(r.problem.empty()) << r.problem;
    EXPECT_TRUE(r.refused.empty()) << r.refused;
  }
  EXPECT_GT(taken, 0);
}

// Too few programs for the machine: each product has tiles of its own.
TEST(EmulatedProducts, AGateOfFewRowsIsTwoKernels) {
  auto backend = open_emulated_cuda("sm_90a").value();
  EXPECT_GT(passes::run_pipeline(gated(300, 200, 264), backend->target()).plan.kernels.size(), 1);
}

}  // namespace
}  // namespace tilewright::emulation
