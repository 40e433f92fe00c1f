// Masks as ranges of a loop, against every position: nothing that is attended is left out, and of masks of
// one interval nothing else is walked.
#include "passes/masks/loop_range.h"

#include "ops/functions.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tilewright::passes {
namespace {

using ir::Value;

constexpr Index kRows = 90, kKeys = 130, kBlockRows = 16, kBlockKeys = 8;

using Holds = std::function<bool(Index row, Index key)>;

struct Mask {
  Value value;  // bool (rows, keys)
  Holds holds;
};

// The largest of what a mask leaves of each row: one loop over the keys.
struct Masked {
  explicit Masked(const std::function<Mask(ir::Graph&, const Value& row, const Value& key)>& make) {
    const Value x{&graph, graph.add_input("x", {DType::f32, {kRows, kKeys}})};
    const Mask mask = make(graph, ops::iota(graph, {kRows, kKeys}, 0), ops::iota(graph, {kRows, kKeys}, 1));
    holds = mask.holds;
    const Value scores = ops::where(mask.value, ops::mul(x, 2.0), -std::numeric_limits<double>::infinity());
    const Value largest = ops::max(scores, {1});
    Group group{.nodes = {}, .outputs = {largest.id}};
    for (ir::NodeId id = 0; id <= largest.id; ++id)
      if (graph.node(id).op->kind != ir::OpClass::input && !is_inlined(graph.node(id)))
        group.nodes.push_back(id);
    nest = std::get<LoopNest>(build_loop_nest(graph, group));
    shape = {.row = 0, .column = 1, .rows = kBlockRows, .columns = kBlockKeys, .looped = true};
  }

  LoopRange blocks() const {
    for (std::size_t s = 0; s < nest.exprs.size(); ++s)
      if (nest.exprs[s].kind == Expr::Kind::reduce)
        return needed_blocks(graph, LoopSpace(nest, shape), {static_cast<int>(s)});
    throw Error("no reduction");
  }

  // First and last block that hold something of the rows from `start`; none: (0, 0).
  std::pair<Index, Index> attended(Index start) const {
    Index first = kKeys, end = 0;
    for (Index r = start; r < std::min(start + kBlockRows, kRows); ++r)
      for (Index k = 0; k < kKeys; ++k)
        if (holds(r, k)) first = std::min(first, k), end = std::max(end, k + 1);
    return end == 0 ? std::pair<Index, Index>{0, 0}
                    : std::pair{first / kBlockKeys, ceil_div(end, kBlockKeys)};
  }

  // Blocks that are walked, and those that must be, in all.
  std::pair<Index, Index> check() const {
    const LoopRange range = blocks();
    Index walked = 0, least = 0;
    for (Index start = 0; start < kRows; start += kBlockRows) {
      const Index lower = range.lower.evaluate({start, 0}).value(),
                  upper = range.upper.evaluate({start, 0}).value();
      const auto [first, end] = attended(start);
      EXPECT_EQ(lower % kBlockKeys, 0);
      EXPECT_GE(lower, 0);
      EXPECT_LE(upper, kKeys);
      if (first < end) {
        EXPECT_LE(lower, first * kBlockKeys) << start;
        EXPECT_GE(ceil_div(upper, kBlockKeys), end) << start;
      }
      walked += upper > lower ? ceil_div(upper - lower, kBlockKeys) : 0;
      least += end - first;
    }
    return {walked, least};
  }

  ir::Graph graph{"masked"};
  Holds holds;
  LoopNest nest;
  TileShape shape;
};

TEST(LoopRange, IsExactForOneInterval) {
  const auto exact = [](const std::function<Mask(ir::Graph&, const Value&, const Value&)>& make) {
    const auto [walked, least] = Masked(make).check();
    EXPECT_EQ(walked, least);
    return least;
  };
  EXPECT_GT(exact([](ir::Graph&, const Value& r, const Value& k) {
              return Mask{ops::le(k, r), [](Index i, Index j) { return j <= i; }};
            }),
            0);
  exact([](ir::Graph&, const Value& r, const Value& k) {
    return Mask{ops::lt(k + 40, r), [](Index i, Index j) { return j + 40 < i; }};
  });
  exact([](ir::Graph&, const Value& r, const Value& k) {
    return Mask{ops::bit_and(ops::ge(k, r - 20), ops::lt(k, r + 5)),
                [](Index i, Index j) { return j >= i - 20 && j < i + 5; }};
  });
  exact([](ir::Graph&, const Value& r, const Value& k) {
    return Mask{ops::eq(ops::trunc_div(r, 16), ops::trunc_div(k, 16)),
                [](Index i, Index j) { return i / 16 == j / 16; }};
  });
  exact([](ir::Graph&, const Value& r, const Value& k) {
    return Mask{ops::bit_or(ops::lt(k, 24), ops::bit_not(ops::gt(k, r))),
                [](Index i, Index j) { return j < 24 || j <= i; }};
  });
  // Rows from 48 on attend to nothing, and run no loop.
  EXPECT_EQ(exact([](ir::Graph&, const Value& r, const Value& k) {
              return Mask{ops::bit_and(ops::lt(r, 48), ops::lt(k, 40)),
                          [](Index i, Index j) { return i < 48 && j < 40; }};
            }),
            3 * 5);
}

Mask random_mask(std::mt19937& random, const Value& r, const Value& k, int depth) {
  const auto below = [&](Index n) { return static_cast<Index>(random() % static_cast<unsigned>(n)); };
  if (depth > 0) {
    const Mask a = random_mask(random, r, k, depth - 1), b = random_mask(random, r, k, depth - 1);
    switch (below(4)) {
      case 0:
        return {ops::bit_and(a.value, b.value),
                [=](Index i, Index j) { return a.holds(i, j) && b.holds(i, j); }};
      case 1:
        return {ops::bit_or(a.value, b.value),
                [=](Index i, Index j) { return a.holds(i, j) || b.holds(i, j); }};
      case 2:
        return {ops::bit_not(a.value), [=](Index i, Index j) { return !a.holds(i, j); }};
      default:
        return {ops::where(b.value, a.value, ops::bit_not(a.value)),
                [=](Index i, Index j) { return a.holds(i, j) == b.holds(i, j); }};
    }
  }
  const Index x = below(7) - 3, y = below(7) - 3, c = below(200) - 100, d = 1 + below(20);
  const Value left = r * x + ops::trunc_div(k + 1, d) * y;
  const auto at = [=](Index i, Index j) { return i * x + (j + 1) / d * y; };
  switch (below(6)) {
    case 0:
      return {ops::lt(left, c), [=](Index i, Index j) { return at(i, j) < c; }};
    case 1:
      return {ops::ge(left, k - c), [=](Index i, Index j) { return at(i, j) >= j - c; }};
    case 2:
      return {ops::eq(left, k + c), [=](Index i, Index j) { return at(i, j) == j + c; }};
    case 3:
      return {ops::ne(k, c), [=](Index, Index j) { return j != c; }};
    case 4:
      return {ops::le(ops::rem(r + k, d), ops::trunc_div(r, 7)),
              [=](Index i, Index j) { return (i + j) % d <= i / 7; }};
    default:
      return {ops::gt(ops::trunc_div(k, d), ops::trunc_div(r, 3) + c / 10),
              [=](Index i, Index j) { return j / d > i / 3 + c / 10; }};
  }
}

TEST(LoopRange, LeavesNothingOutOfRandomMasks) {
  std::mt19937 random{5};
  Index walked = 0, least = 0, all = 0, checked = 0;
  for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Masked masked(
        [&](ir::Graph&, const Value& r, const Value& k) { return random_mask(random, r, k, i % 4); });
    // Quotients by a divisor of an extent split the variable; the shape above is not one of such a program.
    if (masked.nest.extents != Extents{kRows, kKeys}) continue;
    const auto [w, l] = masked.check();
    ++checked;
    walked += w, least += l, all += ceil_div(kRows, kBlockRows) * ceil_div(kKeys, kBlockKeys);
  }
  EXPECT_GT(checked, 200);
  // Most of what can be left out is.
  EXPECT_LT(walked, all);
  EXPECT_LT(walked - least, (all - least) / 2) << walked << " of " << all << ", " << least << " needed";
}

}  // namespace
}  // namespace tilewright::passes
