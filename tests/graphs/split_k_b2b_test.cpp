// Few queries over many keys: programs share the loop over the keys, and a second kernel merges their parts.
#include "ops/attention.h"
#include "ops/functions.h"
#include "ops/ops.h"
#include "support/host_values.h"
#include "support/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::test {
namespace {

using ir::Value;

struct Decoding {
  Index batch = 1, heads = 4, shared = 4, queries = 1, keys = 2000, depth = 32, columns = 32;
  bool masked = false;  // each sequence has keys of its own number, one of them none
};

// Results and log-sum-exp.
ir::Graph graph_of(const Decoding& d) {
  ir::Graph g("decoding");
  const Index kv = d.heads / d.shared;
  const auto input = [&](const char* name, const Shape& shape) {
    return Value{&g, g.add_input(name, {DType::f32, shape})};
  };
  const Value q = input("q", {d.batch, d.heads, d.queries, d.depth}),
              k = input("k", {d.batch, kv, d.keys, d.depth}),
              v = input("v", {d.batch, kv, d.keys, d.columns});
  ops::AttendOptions options;
  if (d.masked) {
    const Value lengths{&g, g.add_input("lengths", {DType::i64, {d.batch, 1, 1, 1}})};
    const Shape scores({d.batch, d.heads, d.queries, d.keys});
    options.mask = ops::lt(ops::iota(g, scores, 3), ops::broadcast_to(lengths, scores));
  }
  const ops::Attended a = ops::attend(ops::attention_scores(q, k, 0.2), v, options);
  g.set_outputs({a.out.id, a.lse.id});
  return g;
}

std::vector<ir::HostTensor> inputs_of(const ir::Graph& g, const Decoding& d) {
  Random random(3);
  std::vector<ir::HostTensor> out;
  for (ir::NodeId id : g.inputs()) {
    ir::HostTensor t{.type = g.type(id)};
    if (is_float(t.type.dtype)) t = random_host(t.type, {.low = -2, .high = 2}, random);
    for (Index b = 0; !is_float(t.type.dtype) && b < d.batch; ++b) t.i.push_back(b * d.keys / 3);
    out.push_back(std::move(t));
  }
  return out;
}

class SplitKB2b : public testing::TestWithParam<const char*> {
 protected:
  void check(const Decoding& d, double flops_per_s = 5e10) {
    const ir::Graph g = graph_of(d);
    GraphRunner runner(GetParam());
    tile::Target target = runner.device->target();
    target.units = 12;  // idle ones, whatever this machine has
    target.launch_s = 1e-7;
    target.predicted_us = nullptr;  // the form is asked for, whatever the schedules' times are
    target.flops_per_s = flops_per_s;
    target.memory_bytes_per_s = target.cache_bytes_per_s = target.unit_cache_bytes_per_s = 2e10;
    const passes::Compiled compiled = passes::run_pipeline(g, target);
    EXPECT_EQ(compiled.kernels.size(), 2U);
    const std::vector<ir::HostTensor> in = inputs_of(g, d), want = ops::evaluate(g, in),
                                      got = runner.run(compiled, in);
    for (std::size_t o = 0; o < want.size(); ++o)
      for (std::size_t e = 0; e < want[o].f.size(); ++e) {
        const double x = got[o].f[e], y = want[o].f[e];
        if (std::isinf(y) && x == y) continue;
        ASSERT_LE(std::abs(x - y), 4e-6 * (1 + std::abs(y))) << o << " " << e;
      }
  }
};

TEST_P(SplitKB2b, OfOneQuery) {
  check({});
  check({.batch = 2, .heads = 2, .shared = 1, .keys = 1111, .depth = 64});
}
TEST_P(SplitKB2b, OfFewQueries) { check({.queries = 7, .keys = 3001, .columns = 40}); }
// Each block computes the scores again, since arithmetic is cheap.
TEST_P(SplitKB2b, OfSeveralBlocksOfColumns) { check({.keys = 1500, .depth = 4, .columns = 300}, 1e13); }
// A part may have no keys to attend; a sequence may have none.
TEST_P(SplitKB2b, OfSequencesOfTheirOwnLengths) {
  check({.batch = 3, .masked = true});
  check({.batch = 2, .queries = 3, .keys = 1300, .masked = true});
}

INSTANTIATE_TEST_SUITE_P(Devices, SplitKB2b, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
