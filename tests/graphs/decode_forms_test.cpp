// Decoding as a GPU lowers it: one chain whose keys so many programs share as keep the machine busy.
#include "ops/attention.h"
#include "ops/functions.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright::test {
namespace {

using ir::Value;

struct Decoding {
  Index batch = 1, heads = 64, kv_heads = 8, queries = 1, keys = 8000, depth = 128;
};

passes::Compiled compiled(const Decoding& d) {
  ir::Graph g("decoding");
  const auto input = [&](const char* name, const Shape& shape) {
    return Value{&g, g.add_input(name, {DType::bf16, shape})};
  };
  const Value q = input("q", {d.batch, d.heads, d.queries, d.depth}),
              k = input("k", {d.batch, d.kv_heads, d.keys, d.depth}),
              v = input("v", {d.batch, d.kv_heads, d.keys, d.depth});
  g.set_outputs({ops::attend(ops::attention_scores(q, k, 0.1), v, {.result = DType::bf16}).out.id});
  return passes::run_pipeline(g, h200_target());
}

// The fewest of them: a chain, and where programs share it what merges their parts.
void expect_one_b2b(const Decoding& d) {
  const passes::Compiled c = compiled(d);
  const std::string what =
      ::testing::PrintToString(std::vector{d.batch, d.heads, d.kv_heads, d.queries, d.keys});
  ASSERT_LE(c.fusion.groups.size(), 1U) << what;
  if (d.keys < 4000) return;  // a second kernel takes longer than it saves
  double programs = 1;
  for (Index extent : tile::grid_extents(c.plan.kernels[0], {})) programs *= static_cast<double>(extent);
  const double units = c.target.units, blocks = static_cast<double>(d.batch * d.kv_heads) *
                                                std::ceil(static_cast<double>(d.keys) / 128.0);
  EXPECT_GE(programs / (std::ceil(programs / units) * units), std::min(0.7, 0.5 * blocks / units)) << what;
}

TEST(DecodeForms, AnyNumberOfSequencesIsOneChain) {
  for (Index batch : {1, 2, 3, 5, 8, 16, 17, 64})
    for (Index keys : {1000, 4001, 8000, 8192, 65536}) {
      expect_one_b2b({.batch = batch, .keys = keys});
      expect_one_b2b({.batch = batch, .queries = 4, .keys = keys});
      expect_one_b2b({.batch = batch, .heads = 8, .keys = keys});
      expect_one_b2b({.batch = batch, .heads = 32, .kv_heads = 1, .keys = keys});
    }
}

}  // namespace
}  // namespace tilewright::test
