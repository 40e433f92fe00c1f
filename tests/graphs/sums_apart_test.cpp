// Gradients of keys and values that query heads share: sums over the heads behind their products, or in the
// products' depth.
#include "passes/graph/sums_apart.h"

#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/simplify.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {
namespace {

using ir::Value;

struct Heads {
  Index queries = 16, keys = 2, length = 1280, depth = 128;
};

// A loss through attention, causal where that is said, and the gradients of q, k and v.
ir::Graph gradients(const Heads& h, DType dtype, bool causal) {
  ir::Graph g("attention");
  const auto input = [&](const char* name, Index heads) {
    return Value{&g, g.add_input(name, {dtype, {1, heads, h.length, h.depth}})};
  };
  const Value q = input("q", h.queries), k = input("k", h.keys), v = input("v", h.keys),
              target = input("target", h.queries);
  ops::AttendOptions options{.result = dtype};
  if (causal) {
    const Shape square{h.length, h.length};
    const auto places = [&](Index axis) { return ops::iota(g, square, axis); };
    options.mask = ops::le(places(1), places(0));
  }
  const Value off = ops::attend(ops::attention_scores(q, k, 0.1), v, options).out - target;
  g.set_outputs({ops::sum(off * off, {0, 1, 2, 3}).id});
  return passes::differentiate(g, {0, 1, 2});
}

bool is_apart(const ir::Node& n) { return n.op == &ops::kSum && n.attrs.has(ops::kApart); }

std::ptrdiff_t sums_apart(const ir::Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), is_apart);
}

TEST(SumsApart, HaveTheValuesOfTheGraphAsItWas) {
  for (const bool causal : {false, true}) {
    const ir::Graph whole = gradients({.queries = 6, .keys = 2, .length = 5, .depth = 4}, DType::f64, causal);
    const auto apart = passes::with_sums_apart(whole);
    ASSERT_TRUE(apart);
    EXPECT_EQ(sums_apart(*apart), 2) << "of keys and values";
    const ir::Graph simplified = passes::simplify(*apart);
    EXPECT_EQ(sums_apart(simplified), 2) << "rewrites leave them alone";
    Random random(7);
    std::vector<ir::HostTensor> inputs;
    for (ir::NodeId id : whole.inputs()) inputs.push_back(random_host(whole.type(id), {}, random));
    const auto want = ops::evaluate(whole, inputs), got = ops::evaluate(simplified, inputs);
    for (std::size_t o = 0; o < want.size(); ++o)
      EXPECT_EQ(difference(got[o], want[o], {.relative = 1e-12, .absolute = 1e-12}), "") << o;
  }
}

// Products of heads are added before they are rounded.
TEST(SumsApart, AddWhatIsNotRounded) {
  const auto apart = passes::with_sums_apart(gradients({.length = 64}, DType::bf16, true));
  ASSERT_TRUE(apart);
  for (const ir::Node& n : apart->nodes())
    if (is_apart(n)) EXPECT_EQ(n.type.dtype, DType::f32);
}

// What rounds on purpose is no step between a product and its sum.
TEST(SumsApart, ThereAreNoneOfWhatWasRoundedOnPurpose) {
  for (const DType between : {DType::i32, DType::f8e4m3, DType::bf16}) {
    ir::Graph g("rounded");
    const Value a{&g, g.add_input("a", {DType::f32, {3, 8, 8}})};
    const Value scores = ops::exp(ops::matmul(a, ops::swap_axes(a, 1, 2))), product = ops::matmul(scores, a);
    g.set_outputs({ops::sum(ops::cast(ops::cast(product, between), DType::f32), {0}).id});
    EXPECT_EQ(passes::with_sums_apart(g).has_value(), between == DType::bf16) << name(between);
  }
}

TEST(SumsApart, ThereAreNoneWhereEachHeadHasKeysOfItsOwn) {
  EXPECT_FALSE(
      passes::with_sums_apart(gradients({.queries = 2, .keys = 2, .length = 64}, DType::bf16, true)));
}

// What an H200's plan comes to, kernel by kernel: heads that are many and few, lengths of whole and of broken
// blocks. bf16 has 8 bits, each result is a sum of products of three values so rounded, and stands beside the
// largest of its tensor.
TEST(SumsApart, PlansOfFewHeadsHaveTheGraphsValues) {
  GraphRunner runner("reference");
  std::uint64_t seed = 1;
  for (const Heads& h : {Heads{8, 1, 64, 16}, Heads{8, 1, 100, 64}, Heads{8, 1, 256, 64},
                         Heads{6, 2, 130, 32}, Heads{4, 1, 257, 16}}) {
    const ir::Graph graph = gradients(h, DType::bf16, true);
    Random random(seed++);
    std::vector<ir::HostTensor> inputs;
    for (ir::NodeId id : graph.inputs()) {
      inputs.push_back(random_host(graph.type(id), {.low = -1, .high = 1}, random));
    }
    const auto want = ops::evaluate(graph, inputs),
               got = runner.run(passes::run_pipeline(graph, h200_target()), inputs);
    for (std::size_t o = 0; o < want.size(); ++o) {
      double largest = 0;
      for (const double v : want[o].f) largest = std::max(largest, std::abs(v));
      EXPECT_EQ(difference(got[o], want[o], {.absolute = 3 * 0x1p-8 * largest}), "")
          << o << " of " << h.queries << " heads " << h.keys << " length " << h.length;
    }
  }
}

// Two heads of keys are ten blocks of programs each for 132 units, and a mask skips half of them where a
// program has one head.
TEST(SumsApart, AreTakenWhereHeadsAreFew) {
  const passes::Compiled c = passes::run_pipeline(gradients({}, DType::bf16, true), h200_target());
  ASSERT_EQ(sums_apart(c.graph), 2);
  for (const passes::Group& group : c.fusion.groups) {
    const auto has = [&](const auto& is) {
      return std::any_of(group.nodes.begin(), group.nodes.end(),
                         [&](ir::NodeId id) { return is(c.graph.node(id)); });
    };
    EXPECT_FALSE(has(is_apart) && has([](const ir::Node& n) { return n.op->kind == ir::OpClass::matmul; }));
  }
}

}  // namespace
}  // namespace tilewright::test
