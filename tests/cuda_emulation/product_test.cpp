// What a GPU would run for matmuls of sizes that break tilings: the printed kernels, emulated, against the
// interpreter.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "passes/pipeline.h"
#include "support/draws.h"
#include "support/product_graphs.h"

#include <map>

namespace tilewright::emulation {
namespace {

TEST(EmulatedProducts, KernelsOfEveryFormMatchTheReference) {
  auto backend = open_emulated_cuda("sm_90a").value();
  // A row of results of all threads: most of them stand beyond its 17 columns.
  std::vector<test::ProductGraph> products = {{.m = 17,
                                               .n = 1,
                                               .k = 129,
                                               .dtype = DType::f8e5m2,
                                               .b_dtype = DType::f8e4m3,
                                               .around = test::ProductGraph::Around::epilogue_reductions}};
  for (std::uint64_t seed = 1; seed <= test::draws(40); ++seed)
    products.push_back(test::random_product(seed));
  for (std::uint64_t seed = 1; seed <= test::draws(12); ++seed)
    products.push_back(test::random_product_of_rows_apart(seed));
  int dots = 0, shared = 0;
  for (test::ProductGraph& product : products) {
    if (product.m * product.n * product.k > 1 << 20) product.k = std::min<Index>(product.k, 512);
    const passes::Compiled compiled =
        passes::run_pipeline(test::graph_of(product), backend->target(), {.fuse = product.apart == 0});
    shared += compiled.plan.kernels.size() > 1 ? 1 : 0;
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      tile::for_each_op(kernel.body,
                        [&](const tile::Op& op) { dots += op.kind == tile::OpKind::dot ? 1 : 0; });
      int taken = 0;
      for (const backends::Candidate& c : backend->candidates(kernel)) {
        if (!c.refusal.empty() || taken == 2) continue;
        const auto r = test::check_kernel(*backend, kernel, c.schedule, as_printed());
        EXPECT_TRUE(r.problem.empty()) << to_string(product) << ": " << r.problem;
        taken += r.refused.empty() ? 1 : 0;
      }
      EXPECT_GT(taken, 0) << to_string(product) << " " << kernel.name << ": no schedule";
    }
  }
  EXPECT_GT(dots, 5);
  EXPECT_GT(shared, 0);
}

// Sums and extremes over rows: a thread combines its rows on the way, in one register a column.
TEST(EmulatedProducts, CarriedRowsAreFolded) {
  auto backend = open_emulated_cuda("sm_90a").value();
  for (const Index rows : {Index{4096}, Index{3001}})
    for (const bool largest : {false, true}) {
      ir::Graph graph("columns");
      const ir::Value x{&graph, graph.add_input("x", {DType::bf16, {rows, 520}})};
      const ir::Value wide = ops::cast(x, DType::f32) * 0.5;
      graph.set_outputs({(largest ? ops::max(wide, {0}) : ops::sum(wide, {0})).id});
      const passes::Compiled compiled = passes::run_pipeline(graph, backend->target());
      int folded = 0;
      for (const tile::Kernel& kernel : compiled.plan.kernels) {
        const auto candidates = backend->candidates(kernel);
        for (std::size_t i = 0; i < std::min<std::size_t>(candidates.size(), 4); ++i) {
          if (!candidates[i].refusal.empty()) continue;
          expect_right(*backend, kernel, candidates[i].schedule, {.odd_share = 0.01, .model = {.scale = 2}});
          const std::string text = backend->print(kernel, candidates[i].schedule).value().text;
          folded += text.find("for (int r = 0; r < 1; ++r)") != std::string::npos ? 1 : 0;
        }
      }
      EXPECT_GT(folded, 0) << rows;
    }
}

TEST(EmulatedProducts, SinglesMayBeMultipliedAsTf32) {
  auto backend = open_emulated_cuda("sm_90a").value();
  tile::Target target = backend->target();
  target.tf32 = true;
  std::map<tile::DotUnit, int> units;
  for (bool b_by_columns : {false, true})
    for (Index n : {40, 136}) {
      const test::ProductGraph product{.m = 130,
                                       .n = n,
                                       .k = 72,
                                       .b_by_columns = b_by_columns,
                                       .around = test::ProductGraph::Around::bias_and_silu};
      const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), target);
      for (const tile::Kernel& kernel : compiled.plan.kernels) {
        const backends::Candidate best = backend->candidates(kernel).front();
        SCOPED_TRACE(to_string(product));
        expect_right(*backend, kernel, best.schedule);
        ++units[dot_unit(best.schedule)];
      }
    }
  EXPECT_EQ(units[tile::DotUnit::wgmma], 2);
  EXPECT_EQ(units[tile::DotUnit::mma], 2);
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
    const auto* b2b = std::get_if<tile::WgmmaB2b>(&c.schedule.kind);
    if (!c.refusal.empty() || !b2b) continue;
    ++taken;
    EXPECT_GT(b2b->stages, 2);
    expect_right(*backend, kernel, c.schedule);
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
