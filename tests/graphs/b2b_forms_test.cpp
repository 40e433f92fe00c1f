// What a back-to-back matmul must be like to run on tensor cores, and what is said where it is not.
#include "ops/composites.h"
#include "ops/functions.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

using ir::Value;

enum class Bias : unsigned char { none, by_keys, by_queries };  // which of its axes is contiguous

passes::Compiled attention_with(Bias bias, const tile::Target& target = h200_target()) {
  constexpr Index kHeads = 16, kQueries = 1024, kKeys = 2048, kDepth = 64;
  ir::Graph g("biased");
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return Value{&g, g.add_input(name, {dtype, shape})};
  };
  const Value q = input("q", DType::bf16, {kHeads, kQueries, kDepth}),
              k = input("k", DType::bf16, {kHeads, kKeys, kDepth}),
              v = input("v", DType::bf16, {kHeads, kKeys, kDepth});
  Value scores = ops::matmul(q, ops::transpose(k, {0, 2, 1}), DType::f32);
  if (bias == Bias::by_keys) scores = scores + input("bias", DType::f32, {kHeads, kQueries, kKeys});
  if (bias == Bias::by_queries)
    scores = scores + ops::transpose(input("bias", DType::f32, {kHeads, kKeys, kQueries}), {0, 2, 1});
  g.set_outputs({ops::matmul(ops::cast(ops::softmax(scores), DType::bf16), v, DType::f32).id});
  return passes::run_pipeline(g, target);
}

// Tiles of two warpgroups' rows: 128.
Index rows_of(const passes::Compiled& c) {
  Index rows = 0;
  for (const tile::Kernel& kernel : c.plan.kernels)
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind == tile::OpKind::dot) rows = kernel.type(op.results[0]).shape[0];
    });
  return rows;
}

TEST(B2bForms, TilesThatLieByKeysAreLoadedAsThreadsHoldThem) {
  for (const Bias bias : {Bias::none, Bias::by_keys}) {
    const passes::Compiled c = attention_with(bias);
    ASSERT_EQ(c.plan.kernels.size(), 1U);
    EXPECT_EQ(rows_of(c), 128);
    EXPECT_EQ(c.kernels[0].note, "");
  }
}

// Tiles of tensor cores would be too large for the threads that must turn the bias around: it is added before
// the chain, whose scores lie by keys then, unless memory is too slow for them.
TEST(B2bForms, TilesThatAreTurnedAroundComeBeforeTheChainOrLeaveItToVectorUnits) {
  const passes::Compiled before = attention_with(Bias::by_queries);
  EXPECT_EQ(before.plan.kernels.size(), 2U);
  for (const passes::Compiled::KernelInfo& kernel : before.kernels)
    EXPECT_TRUE(kernel.cost.dots.on_matrix_units) << kernel.note;
  tile::Target slow = h200_target();
  slow.memory_bytes_per_s = slow.cache_bytes_per_s = 1e11;
  const passes::Compiled c = attention_with(Bias::by_queries, slow);
  ASSERT_EQ(c.plan.kernels.size(), 1U);
  EXPECT_EQ(rows_of(c), 64);
  EXPECT_FALSE(c.kernels[0].cost.dots.on_matrix_units);
  EXPECT_NE(c.kernels[0].note.find("on vector units: a tile beside the dots lies by rows"), std::string::npos)
      << c.kernels[0].note;
}

}  // namespace
}  // namespace tilewright::test
