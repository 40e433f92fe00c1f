// Sums over all axes follow the rows where something of these rows was reduced before.
#include "passes/graph/sums_by_rows.h"

#include "ir/op.h"
#include "ops/functions.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

using ir::Graph;
using ir::Value;

tile::Target small_target() {
  tile::Target t;
  t.row_bytes = 4 * 1000;
  return t;
}

// The axes of every reduction of the graph that the pass makes, in order.
std::vector<std::vector<Index>> reduced(const Graph& graph) {
  std::vector<std::vector<Index>> axes;
  const Graph out = with_sums_by_rows(graph, small_target());
  for (ir::NodeId id = 0; id < out.size(); ++id)
    if (out.node(id).op->kind == ir::OpClass::reduce) axes.push_back(out.node(id).attrs.integers("axes"));
  return axes;
}

// Σ over `axes` of (x − mean of x over `rows`)².
Graph spread(const Shape& shape, const std::vector<Index>& rows, const std::vector<Index>& axes,
             DType dtype = DType::f32) {
  Graph g("program");
  const Value x{&g, g.add_input("x", {dtype, shape})};
  const Value mean = ops::mul(ops::sum(x, rows, ops::Keep::yes), 0.125);
  const Value off = x - ops::broadcast_to(mean, shape);
  g.set_outputs({ops::sum(off * off, axes).id});
  return g;
}

TEST(SumsByRows, SumsOverAllAxesFollowTheRows) {
  using Axes = std::vector<std::vector<Index>>;
  EXPECT_EQ(reduced(spread({100, 20}, {1}, {0, 1})), (Axes{{1}, {1}, {0}}));
  EXPECT_EQ(reduced(spread({100, 20}, {0}, {0, 1})), (Axes{{0}, {0}, {0}}));
  EXPECT_EQ(reduced(spread({10, 20, 30}, {0, 2}, {0, 1, 2})), (Axes{{0, 2}, {0, 2}, {0}}));
  EXPECT_EQ(reduced(spread({10, 20, 30}, {1}, {1, 2})), (Axes{{1}, {1}, {1}}));
}

TEST(SumsByRows, OthersStay) {
  using Axes = std::vector<std::vector<Index>>;
  EXPECT_EQ(reduced(spread({10, 20}, {1}, {0, 1})), (Axes{{1}, {0, 1}})) << "one program holds it";
  EXPECT_EQ(reduced(spread({100, 20}, {1}, {1})), (Axes{{1}, {1}})) << "the rows alone";
  EXPECT_EQ(reduced(spread({100, 20}, {1}, {0})), (Axes{{1}, {0}})) << "across the rows";
  EXPECT_EQ(reduced(spread({100, 20}, {0, 1}, {0, 1})), (Axes{{0, 1}, {0, 1}})) << "no rows";
  Graph plain("program");
  const Value x{&plain, plain.add_input("x", {DType::f32, {100, 20}})};
  const Value bias{&plain, plain.add_input("bias", {DType::f32, {100, 1}})};
  plain.set_outputs({ops::sum(x * ops::broadcast_to(bias, {100, 20}), {0, 1}).id});
  EXPECT_EQ(reduced(plain), (Axes{{0, 1}})) << "what is stretched is no statistic";
  Graph weighed("program");
  const Value weights{&weighed, weighed.add_input("weights", {DType::f32, {100, 30}})};
  const Value y{&weighed, weighed.add_input("y", {DType::f32, {100, 20}})};
  const Value all = ops::broadcast_to(ops::sum(weights, {1}, ops::Keep::yes), {100, 20});
  weighed.set_outputs({ops::sum(y / all, {0, 1}).id});
  EXPECT_EQ(reduced(weighed), (Axes{{1}, {0, 1}})) << "a statistic of another tensor's rows";
}

}  // namespace
}  // namespace tilewright::passes
