// Attention over caches in pages: the chain reads them where a table says, block by block.
#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "support/h200_target.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tilewright::test {
namespace {

using ir::Value;

struct Paged {
  Index batch = 3, heads = 4, shared = 2, queries = 1, pages = 9, page = 128, depth = 32;
  bool causal = false;  // the last queries of each sequence
  DType dtype = DType::f32;
};

Index keys_of(const Paged& p) { return p.pages * p.page; }

ir::Graph graph_of(const Paged& p) {
  ir::Graph g("paged");
  const Index kv = p.heads / p.shared;
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return Value{&g, g.add_input(name, {dtype, shape})};
  };
  const Shape pages{p.batch * p.pages + 2, p.page, kv, p.depth};
  const Value q = input("q", p.dtype, {p.batch, p.heads, p.queries, p.depth}), k = input("k", p.dtype, pages),
              v = input("v", p.dtype, pages), table = input("table", DType::i32, {p.batch, p.pages}),
              lengths = input("lengths", DType::i64, {p.batch, 1, 1, 1});
  const auto cache = [&](Value in) {
    return ops::swap_axes(ops::reshape(ops::take(in, table, 0), {p.batch, keys_of(p), kv, p.depth}), 1, 2);
  };
  const Shape scores{p.batch, p.heads, p.queries, keys_of(p)};
  const Value key = ops::iota(g, scores, 3), length = ops::broadcast_to(lengths, scores);
  Value sees = ops::lt(key, length);
  if (p.causal) sees = ops::logical_and(sees, ops::le(key, ops::iota(g, scores, 2) + (length - p.queries)));
  const ops::Attended a =
      ops::attend(ops::attention_scores(q, cache(k), 0.2), cache(v), {.mask = sees, .result = p.dtype});
  g.set_outputs({a.out.id});
  return g;
}

// Pages in any order, some in two sequences; what lies behind a length is in no page, or in one of NaNs.
std::vector<ir::HostTensor> inputs_of(const ir::Graph& g, const Paged& p) {
  Random random(3);
  std::mt19937 order{3};
  std::vector<ir::HostTensor> out;
  for (ir::NodeId id : g.inputs()) {
    ir::HostTensor t{.type = g.type(id)};
    const Shape& shape = t.type.shape;
    if (is_float(t.type.dtype)) {
      t = random_host(g.type(id), {.low = -2, .high = 2}, random);
    } else if (shape.rank() == 2) {
      for (Index i = 0; i < shape.size(); ++i) t.i.push_back(i);
      std::shuffle(t.i.begin(), t.i.end(), order);
      t.i[0] = t.i[static_cast<std::size_t>(p.pages)];
      t.i.back() = -1;
    } else {
      for (Index b = 0; b < p.batch; ++b) t.i.push_back(b == 1 ? 0 : keys_of(p) - 5 - p.page * b);
    }
    out.push_back(std::move(t));
  }
  return out;
}

class PagedAttention : public testing::TestWithParam<const char*> {
 protected:
  // On a machine of so many units; 0: with no number of kernels in mind.
  void check(const Paged& p, int units, std::size_t kernels) {
    SCOPED_TRACE(p.page);
    const ir::Graph g = graph_of(p);
    GraphRunner runner(GetParam());
    tile::Target target = runner.device->target();
    if (units > 0) target.units = units;
    target.launch_s = 1e-6;
    const passes::Compiled compiled = passes::run_pipeline(g, target);
    if (units > 0) {
      EXPECT_EQ(compiled.kernels.size(), kernels);
    }
    const std::vector<ir::HostTensor> in = inputs_of(g, p), want = ops::evaluate(g, in),
                                      got = runner.run(compiled, in);
    for (std::size_t e = 0; e < want[0].f.size(); ++e)
      ASSERT_LE(std::abs(got[0].f[e] - want[0].f[e]), 4e-6 * (1 + std::abs(want[0].f[e]))) << e;
  }
};

TEST_P(PagedAttention, ReadsPagesInPlace) {
  check({}, 1, 1);
  check({.page = 64}, 1, 1);
  check({.pages = 40, .page = 16}, 1, 1);
  check({.queries = 3, .causal = true}, 1, 1);
  check({.batch = 17, .heads = 4, .shared = 1, .queries = 70, .pages = 4, .causal = true}, 1, 1);
  check({.heads = 1, .shared = 1, .pages = 3, .page = 520}, 1, 1);
  check({}, 12, 2);  // programs share the keys
}

// Pages that hold no whole blocks are gathered first.
TEST_P(PagedAttention, GathersPagesOfOddSizes) {
  const Paged p{.pages = 30, .page = 25};
  const ir::Graph g = graph_of(p);
  GraphRunner runner(GetParam());
  const passes::Compiled compiled = passes::run_pipeline(g, runner.device->target());
  const auto named = [&](const passes::NotFused& n) {
    return g.node(n.producer).op->name == "take" && n.refusal == passes::Refusal::dot_operand_not_plain;
  };
  EXPECT_TRUE(std::any_of(compiled.fusion.not_fused.begin(), compiled.fusion.not_fused.end(), named));
  check(p, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, PagedAttention, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// On tensor cores: blocks of a page, or as many as make it up; pages of fewer than 32 keys on vector units.
TEST(PagedForms, TakeTensorCoresWhereAPageHoldsABlock) {
  const auto block = [](Index page) {
    const Paged p{
        .heads = 64, .shared = 8, .pages = 8192 / page, .page = page, .depth = 128, .dtype = DType::bf16};
    const passes::Compiled c = passes::run_pipeline(graph_of(p), h200_target());
    EXPECT_EQ(c.fusion.groups.size(), 1U) << page;
    EXPECT_EQ(c.kernels[0].cost.dots.on_matrix_units, page >= 32) << page;
    for (const tile::ConstParam& constant : c.plan.kernels[0].constants)
      if (constant.name == "BK") return constant.value;
    return Index{0};
  };
  EXPECT_EQ(block(256), 128);
  EXPECT_EQ(block(64), 64);
  EXPECT_EQ(block(32), 32);
  EXPECT_EQ(block(16), 16);
}

}  // namespace
}  // namespace tilewright::test
