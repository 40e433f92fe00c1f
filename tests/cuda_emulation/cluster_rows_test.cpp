// Blocks of a cluster that share the rows of a tile: what they add up of its columns, in loops and behind
// them, once and repeated, where the rows or the columns of the tile overhang.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "passes/pipeline.h"
#include "support/column_kernels.h"
#include "support/matmul_kernels.h"
#include "support/product_graphs.h"

namespace tilewright::emulation {
namespace {

using tile::Kernel;
using tile::Schedule;
using tile::samples::column_epilogue_reductions;
using tile::samples::Columns;
using tile::samples::sums_of_rounds;

Schedule shared(int threads, int threads_per_row, int cluster) {
  return {.threads = threads,
          .kind = tile::ElementLoops{.threads_per_row = threads_per_row, .cluster = cluster}};
}

class ClusterRows : public ::testing::Test {
 protected:
  void check(const Kernel& kernel, const Schedule& schedule) {
    SCOPED_TRACE(to_string(schedule));
    expect_right(*backend_, kernel, schedule, {.odd_share = 0.001, .model = {.scale = 2}});
  }
  std::unique_ptr<backends::Backend> backend_ = open_emulated_cuda("sm_90a").value();
};

TEST_F(ClusterRows, ColumnsAreAddedOverTheBlocks) {
  for (const Columns& c : {Columns{256, 128, 64, 64}, Columns{250, 100, 64, 64}, Columns{96, 24, 32, 24}})
    for (const Schedule& s : {shared(64, 8, 2), shared(128, 8, 4), shared(64, 16, 8), shared(96, 8, 2)})
      check(column_epilogue_reductions(c), s);
}

TEST_F(ClusterRows, ExchangesInLoopsAlternateBetweenTwoPlaces) {
  for (const Columns& c : {Columns{256, 128, 32, 64}, Columns{250, 100, 32, 64}})
    for (const Schedule& s : {shared(64, 16, 2), shared(128, 16, 4)}) check(sums_of_rounds(c), s);
  const auto text = backend_->print(sums_of_rounds({256, 128, 32, 64}), shared(128, 16, 4)).value().text;
  EXPECT_NE(text.find("_parts[step & 1]"), std::string::npos) << text;
}

// The loop does not wait for the cluster: that all blocks have started matters behind it.
TEST_F(ClusterRows, OneBarrierForAllReductions) {
  const auto text =
      backend_->print(column_epilogue_reductions({256, 128, 64, 64}), shared(128, 8, 4)).value().text;
  EXPECT_LT(text.find("for (i32"), text.find("cluster_wait();")) << text;
  EXPECT_EQ(text.find("cluster_sync();"), text.rfind("cluster_sync();")) << text;
  EXPECT_NE(text.find("put_columns_cluster<8, 16, 1>"), std::string::npos) << text;
}

TEST_F(ClusterRows, WithoutClustersOrWithADotItIsRefused) {
  const auto sm_80 = open_emulated_cuda("sm_80").value();
  const auto refused = sm_80->print(column_epilogue_reductions({256, 128, 64, 64}), shared(64, 8, 2));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has no clusters"), std::string::npos) << refused.error().message;
  // A dot's operands stand in the shared memory of one block.
  const auto dot = backend_->print(tile::samples::matmul({.m = 64, .n = 64, .k = 64}), shared(64, 8, 2));
  ASSERT_FALSE(dot);
  EXPECT_NE(dot.error().message.find("dot and transpose stay within one block"), std::string::npos)
      << dot.error().message;
}

int cluster_of(const tile::Schedule& schedule) { return std::get<tile::ElementLoops>(schedule.kind).cluster; }

// The compiler lowers this to one kernel without temporaries, whose first schedule has clusters.
TEST_F(ClusterRows, OneRowTimesAMatrixIsOneKernel) {
  const test::ProductGraph product{.n = 8192, .k = 2048, .dtype = DType::bf16};
  const passes::Compiled compiled = passes::run_pipeline(test::graph_of(product), backend_->target());
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  const auto candidates = backend_->candidates(compiled.plan.kernels[0]);
  EXPECT_GT(cluster_of(candidates[0].schedule), 1) << to_string(candidates[0].schedule);
  // Few columns of it: the emulator takes its time.
  tile::Target small = backend_->target();
  small.units = 4;
  const passes::Compiled few =
      passes::run_pipeline(test::graph_of({.n = 200, .k = 700, .dtype = DType::bf16}), small);
  ASSERT_EQ(few.plan.kernels.size(), 1u);
  int taken = 0;
  for (const backends::Candidate& c : backend_->candidates(few.plan.kernels[0]))
    if (c.refusal.empty() && cluster_of(c.schedule) > 1 && ++taken < 4)
      check(few.plan.kernels[0], c.schedule);
  EXPECT_GT(taken, 0);
}

// A softmax down the columns of many rows: one block's registers do not hold a strip of them, a cluster's do.
TEST_F(ClusterRows, ColumnsThatAreHeldLieInTheBlocksOfACluster) {
  ir::Graph graph("columns");
  graph.set_outputs({ops::softmax({&graph, graph.add_input("x", {DType::f32, {6000, 36}})}, 0).id});
  const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  const auto candidates = backend_->candidates(compiled.plan.kernels[0]);
  EXPECT_EQ(cluster_of(candidates[0].schedule), 8) << to_string(candidates[0].schedule);
  check(compiled.plan.kernels[0], candidates[0].schedule);
}

// A batch norm: two reductions over two axes that are not neighbours, of which the second needs the first.
TEST_F(ClusterRows, StatisticsOverTwoAxesAreOneKernel) {
  for (const Index rows : {5, 40}) {
    ir::Graph graph("batch_norm");
    const ir::Value x{&graph, graph.add_input("x", {DType::f32, {rows, 2, 1000}})};
    const ir::Value centred = x - ops::mean(x, {0, 2}, ops::Keep::yes),
                    variance = ops::mean(centred * centred, {0, 2}, ops::Keep::yes);
    graph.set_outputs({(centred * ops::rsqrt(variance + 1e-5)).id});
    const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 1u);
    const auto candidates = backend_->candidates(compiled.plan.kernels[0]);
    // One block's registers hold 5 rows, and not 40.
    EXPECT_EQ(cluster_of(candidates[0].schedule) > 1, rows == 40) << to_string(candidates[0].schedule);
    // One infinity would leave nothing of a channel to compare.
    expect_right(*backend_, compiled.plan.kernels[0], candidates[0].schedule, {.odd_share = 0});
  }
}

}  // namespace
}  // namespace tilewright::emulation
