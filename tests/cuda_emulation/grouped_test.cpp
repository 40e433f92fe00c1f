// Products with a matrix for each group of rows, on tensor cores: which matrix a block takes, and how many of
// its rows count, is data that the fetching warpgroup reads.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "passes/pipeline.h"

namespace tilewright::emulation {
namespace {

ir::Value input(ir::Graph& graph, const char* name, DType dtype, const Shape& shape) {
  return {&graph, graph.add_input(name, {dtype, shape})};
}

// What multiplies in the only kernel, which is checked.
tile::DotUnit check(const ir::Graph& graph) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  const passes::Compiled compiled = passes::run_pipeline(graph, backend->target());
  EXPECT_EQ(compiled.plan.kernels.size(), 1u) << "an operand was gathered";
  const auto schedule = expect_first_right(*backend, compiled.plan.kernels.back());
  return schedule ? dot_unit(*schedule) : tile::DotUnit::fma;
}

// Random ids lie outside the groups, too: such blocks are zeros.
TEST(EmulatedGroups, ABlockOfRowsTakesItsMatrixByACoordinate) {
  for (const Index rows : {Index{128}, Index{40}}) {
    ir::Graph graph("grouped");
    const ir::Value x = input(graph, "x", DType::bf16, {3 * rows, 128}),
                    w = input(graph, "w", DType::bf16, {4, 128, 136}),
                    ids = input(graph, "ids", DType::i64, {3});
    graph.set_outputs({ops::grouped_matmul(x, w, ids).id});
    EXPECT_EQ(check(graph), tile::DotUnit::wgmma);
  }
}

// Rows from a first one on: the engine begins there, and what lies behind the matrix is zeros.
TEST(EmulatedGroups, ABlockBeginsAtTheRowThatDataSays) {
  ir::Graph graph("ragged");
  const ir::Value x = input(graph, "x", DType::bf16, {300, 128}),
                  w = input(graph, "w", DType::bf16, {4, 128, 136}),
                  ids = input(graph, "ids", DType::i64, {3}), begin = input(graph, "begin", DType::i64, {3});
  const Shape places{3, 128};
  const ir::Value rows = ops::broadcast_to(ops::reshape(begin, {3, 1}), places) + ops::iota(graph, places, 1);
  graph.set_outputs({ops::matmul(ops::take(x, rows, 0), ops::take(w, ids, 0)).id});
  EXPECT_EQ(check(graph), tile::DotUnit::wgmma);
}

TEST(EmulatedGroups, CountsEndTheLoopOfBlocksWithoutRows) {
  ir::Graph graph("masked");
  const ir::Value x = input(graph, "x", DType::bf16, {3, 200, 128}),
                  w = input(graph, "w", DType::bf16, {3, 128, 136}),
                  counts = input(graph, "counts", DType::i64, {3});
  graph.set_outputs({ops::masked_matmul(x, w, counts).id});
  EXPECT_EQ(check(graph), tile::DotUnit::wgmma);
}

}  // namespace
}  // namespace tilewright::emulation
