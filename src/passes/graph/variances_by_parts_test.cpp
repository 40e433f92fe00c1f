// Variances of long rows are joined from parts, and are the same.
#include "passes/graph/variances_by_parts.h"

#include "ir/op.h"
#include "ops/composites.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace tilewright::passes {
namespace {

using ir::Graph;
using ir::Value;
using Axes = std::vector<Index>;

tile::Target target_of_short_rows() {
  tile::Target t;
  t.row_bytes = 4 * 600;
  return t;
}

// (x - mean of x over `axes`) and the variance over them.
Graph program(const Shape& shape, const Axes& axes) {
  Graph g("program");
  const Value x{&g, g.add_input("x", {DType::f32, shape})};
  const Value mean = ops::mean(x, axes, ops::Keep::yes);
  g.set_outputs({ops::var(x, axes).id, (x - ops::broadcast_to(mean, shape)).id});
  return g;
}

int reductions(const Graph& graph) {
  int count = 0;
  for (const ir::Node& n : graph.nodes()) count += n.op->kind == ir::OpClass::reduce;
  return count;
}

// But for the numbers 1 / L and its root, which are f32.
void expect_same_values(const Graph& before, const Graph& after) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(-1, 3);
  ir::HostTensor x{before.type(before.inputs()[0]), {}, {}};
  for (Index i = 0; i < x.type.shape.size(); ++i) x.f.push_back(draw(random));
  const auto was = ops::evaluate(before, {&x, 1}), is = ops::evaluate(after, {&x, 1});
  ASSERT_EQ(was.size(), is.size());
  for (std::size_t o = 0; o < was.size(); ++o)
    for (std::size_t i = 0; i < was[o].f.size(); ++i)
      ASSERT_NEAR(is[o].f[i], was[o].f[i], 0x1p-22) << "output " << o << " at " << i;
}

TEST(VariancesByParts, ReadLongRowsOnceAndGiveTheSame) {
  const std::pair<Shape, Axes> programs[] = {
      {{3, 5000}, {1}},         {{7, 11, 300}, {0, 1, 2}},    {{4096, 3}, {0}},
      {{40, 3, 100}, {0, 2}},   {{40, 3, 30, 10}, {0, 2, 3}}, {{2, 1500, 4, 2}, {1, 2}},
      {{9, 50, 50, 3}, {1, 2}}, {{600, 3, 8, 2}, {0, 2, 3}},
  };
  for (const auto& [shape, axes] : programs) {
    const Graph before = program(shape, axes),
                after = with_variances_by_parts(before, target_of_short_rows());
    // Sums of parts of the elements and of the squares, sums of these, and of what the parts' means are
    // apart.
    EXPECT_EQ(reductions(after), 5) << to_string(shape);
    expect_same_values(before, after);
  }
}

// A cluster keeps the rows, but would have all of the work; where the distances are wanted, too, it is the
// kernel that writes them.
TEST(VariancesByParts, RowsAreCutWhereMostOfTheMachineWouldWait) {
  tile::Target wide;
  wide.units = 100, wide.max_cluster = 8, wide.row_bytes = 4 * 80000;
  const auto program_of = [](const Shape& shape) {
    Graph g("program");
    g.set_outputs({ops::var(Value{&g, g.add_input("x", {DType::f32, shape})}, {1}).id});
    return g;
  };
  const Graph few = program_of({2, 40000}), many = program_of({64, 40000}),
              short_ones = program_of({2, 4000});
  EXPECT_EQ(reductions(with_variances_by_parts(few, wide)), 5);
  expect_same_values(few, with_variances_by_parts(few, wide));
  EXPECT_TRUE(with_variances_by_parts(many, wide) == many) << "units enough have work";
  EXPECT_TRUE(with_variances_by_parts(short_ones, wide) == short_ones) << "not worth a second kernel";
  const Graph both = program({2, 40000}, {1});
  EXPECT_TRUE(with_variances_by_parts(both, wide) == both) << "the distances are written";
}

TEST(VariancesByParts, OthersStay) {
  const auto stays = [](const Graph& graph) {
    return with_variances_by_parts(graph, target_of_short_rows()) == graph;
  };
  EXPECT_TRUE(stays(program({40, 500}, {1}))) << "a program keeps the row";
  EXPECT_TRUE(stays(program({2, 5003}, {1}))) << "a prime number of elements has no parts";
  Graph other("program");
  const Value x{&other, other.add_input("x", {DType::f32, {3, 5000}})};
  const Value y{&other, other.add_input("y", {DType::f32, {3, 5000}})};
  const Value off = x - ops::broadcast_to(ops::mean(y, {1}, ops::Keep::yes), {3, 5000});
  other.set_outputs({ops::sum(off * off, {1}).id});
  EXPECT_TRUE(stays(other)) << "another tensor's mean";
  tile::Target any_size = target_of_short_rows();
  any_size.any_size = true;
  const Graph whole = program({3, 5000}, {1});
  EXPECT_TRUE(with_variances_by_parts(whole, any_size) == whole)
      << "how many parts there are depends on the size";
}

}  // namespace
}  // namespace tilewright::passes
