// Reductions over axes that lie apart, written as several: equal values, and one run of axes each.
#include "passes/fuse/separated_axes.h"

#include "ops/functions.h"
#include "ops/ops.h"
#include "support/draws.h"
#include "support/host_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tilewright::test {
namespace {

using ir::Value;

// A target on which a kernel with a loop in a loop takes a second: every split is worth it.
tile::Target loops_are_slow() {
  tile::Target t;
  t.units = 4;
  t.max_threads = 64;
  t.prediction_error = 0.1;
  t.predicted_us = [](const tile::Kernel& kernel, const tile::Target&) {
    double us = 1;
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind != tile::OpKind::loop) return;
      tile::for_each_op(op.blocks[0], [&](const tile::Op& inner) {
        if (inner.kind == tile::OpKind::loop) us = 1e6;
      });
    });
    return us;
  };
  return t;
}

struct Drawn {
  ir::Graph graph{"drawn"};
  ir::Type input;
  std::vector<Index> axes;
};

// Two or three runs of reduced axes, other axes between them.
Drawn draw(Random& random) {
  Drawn d;
  std::vector<Index> extents;
  const Index runs = random.between(2, 3);
  for (Index run = 0; run < runs; ++run) {
    if (run > 0 || random.below(2) == 0) extents.push_back(random.between(2, 4));
    const Index length = random.between(1, 2);
    for (Index i = 0; i < length; ++i) {
      d.axes.push_back(static_cast<Index>(extents.size()));
      extents.push_back(random.between(2, 5));
    }
  }
  if (random.below(3) == 0) extents.push_back(random.between(2, 4));
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32};
  d.input = {kTypes[random.below(5)], Shape(extents)};
  const Value x{&d.graph, d.graph.add_input("x", d.input)};
  Value (*const kOps[])(Value, const std::vector<Index>&, ops::Keep) = {
      [](Value v, const std::vector<Index>& axes, ops::Keep keep) { return ops::sum(v, axes, keep); },
      [](Value v, const std::vector<Index>& axes, ops::Keep keep) { return ops::max(v, axes, keep); },
      [](Value v, const std::vector<Index>& axes, ops::Keep keep) { return ops::min(v, axes, keep); }};
  const auto keep = random.below(2) == 0 ? ops::Keep::yes : ops::Keep::no;
  d.graph.set_outputs({kOps[random.below(3)](x, d.axes, keep).id});
  return d;
}

std::vector<ir::NodeId> reductions(const ir::Graph& graph) {
  std::vector<ir::NodeId> found;
  const std::vector<bool> live = graph.live();
  for (ir::NodeId id = 0; id < graph.size(); ++id)
    if (live[static_cast<std::size_t>(id)] && graph.node(id).op->kind == ir::OpClass::reduce)
      found.push_back(id);
  return found;
}

// Whether no axis that stays stands between those that go.
bool is_one_run(const ir::Graph& graph, ir::NodeId id) {
  const std::vector<Index>& axes = graph.node(id).attrs.integers("axes");
  return axes.back() - axes.front() + 1 == static_cast<Index>(axes.size());
}

TEST(SeparatedAxes, AreReducedOneRunAfterAnother) {
  const tile::Target target = loops_are_slow();
  for (std::uint64_t i = 0; i < draws(300); ++i) {
    Random random(1000 + i);
    const Drawn d = draw(random);
    SCOPED_TRACE(fmt::format("{} {}", i, to_string(d.input.shape)));
    const ir::Graph split = passes::with_separated_axes(d.graph, target);
    ASSERT_EQ(reductions(d.graph).size(), 1U);
    EXPECT_GE(reductions(split).size(), 2U);
    for (ir::NodeId id : reductions(split)) EXPECT_TRUE(is_one_run(split, id));
    // Small integers: every order of adding them is exact in every type.
    ir::HostTensor x = random_host(d.input, {}, random);
    for (double& v : x.f) v = std::trunc(std::clamp(v, -1.0, 1.0));
    for (std::int64_t& v : x.i) v %= 2;
    const std::vector<ir::HostTensor> inputs{x};
    EXPECT_EQ(difference(ops::evaluate(split, inputs).at(0), ops::evaluate(d.graph, inputs).at(0)), "");
  }
}

// What a kernel holds between its reduction and what the result meets stays one reduction.
TEST(SeparatedAxes, ANormThatOneProgramHoldsStaysWhole) {
  const auto norm = [](const Shape& shape, Index held) {
    ir::Graph g("norm");
    const Value x{&g, g.add_input("x", {DType::f32, shape})};
    const Value off = x - ops::broadcast_to(ops::sum(x, {0, 2}, ops::Keep::yes) * 0.125, shape);
    g.set_outputs({(off * ops::broadcast_to(ops::sum(off * off, {0, 2}, ops::Keep::yes), shape)).id});
    tile::Target target = loops_are_slow();
    target.row_bytes = 4 * held;
    return reductions(passes::with_separated_axes(g, target)).size();
  };
  EXPECT_EQ(norm({8, 5, 4}, 32), 2U);
  EXPECT_EQ(norm({8, 5, 4}, 31), 4U);
}

}  // namespace
}  // namespace tilewright::test
