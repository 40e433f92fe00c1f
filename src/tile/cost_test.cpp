#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>
#include <tilewright/tile/cost.h>

#include "support/random_kernel.h"
#include "support/sample_kernels.h"

namespace tilewright::tile {
namespace {

TEST(Cost, PointwiseCountsEachElementOnceInAndOut) {
  const KernelCost c = kernel_cost(samples::elu(1024), {1500});
  // Two programs of 1024: compare, exp (10), subtract, select.
  EXPECT_EQ(c.work.vector[DType::f32], 2048 * 13);
  EXPECT_EQ(c.work.special_ops, 2048);
  EXPECT_EQ(c.work.bytes_read, 1500 * 4);
  EXPECT_EQ(c.work.bytes_written, 1500 * 4);
  EXPECT_EQ(c.work.matrix.total(), 0);
  EXPECT_TRUE(c.exact);
}

TEST(Cost, NoProgramsCostNothing) { EXPECT_EQ(kernel_cost(samples::elu(), {0}).work, perf::Cost()); }

TEST(Cost, MatmulReadsEachOperandOnceHoweverOftenItIsAccessed) {
  const KernelCost c = kernel_cost(samples::matmul_gelu(DType::bf16, {256, 512, 128, 64, 128, 32}), {});
  EXPECT_EQ(c.work.matrix[DType::bf16], 2.0 * 256 * 512 * 128);
  EXPECT_EQ(c.work.bytes_read, 2.0 * (256 * 128 + 128 * 512) + 4 * 512);
  EXPECT_EQ(c.work.bytes_written, 2.0 * 256 * 512);
  // a is read by each of the 4 column blocks, b by each of the 4 row blocks, the bias by 4 row blocks.
  EXPECT_EQ(c.bytes_loaded, 2.0 * (4 * 256 * 128 + 4 * 128 * 512) + 4 * 4 * 512);
  EXPECT_TRUE(c.exact);
}

TEST(Cost, ViewReadByTwoLoopsMovesOnce) {
  const KernelCost c = kernel_cost(samples::row_softmax_looped(DType::f32, 7, 1000, 256), {});
  EXPECT_EQ(c.work.bytes_read, 7 * 1000 * 4);
  EXPECT_EQ(c.work.bytes_written, 7 * 1000 * 4);
  EXPECT_EQ(c.bytes_stored, 7 * 1024 * 4);  // whole blocks
  EXPECT_GT(c.bytes_loaded, 1.9 * c.work.bytes_read);
}

TEST(Cost, CausalAttentionCountsTheBlocksItVisits) {
  samples::AttentionSizes s{
      .heads = 2, .tokens = 128, .width = 16, .block_m = 32, .block_n = 16, .causal = false};
  const double full = kernel_cost(samples::attention(DType::bf16, s), {}).work.matrix.total();
  EXPECT_EQ(full, 2.0 * 2 * 2 * 128 * 128 * 16);
  s.causal = true;
  const KernelCost causal = kernel_cost(samples::attention(DType::bf16, s), {});
  // Row blocks of 32 visit 2, 4, 6 and 8 of the 8 key blocks.
  EXPECT_EQ(causal.work.matrix.total(), full * (2 + 4 + 6 + 8) / 32);
}

TEST(Cost, BroadcastViewsMoveTheirElementsOnce) {
  Builder k("k");
  const View x = k.view("x", DType::f32, {64, 128}, {.strides = {{0, -1}, {1, -1}}});
  const View y = k.view("y", DType::f32, {64, 128});
  k.store(y, {k.program_id(0), 0}, k.load(x, {k.program_id(0), 0}, {.shape = {128}}));
  const KernelCost c = kernel_cost(k.finish({{{64, 1}}}), {});
  EXPECT_EQ(c.work.bytes_read, 128 * 4);
  EXPECT_EQ(c.work.bytes_written, 64 * 128 * 4);
  EXPECT_EQ(c.bytes_loaded, 64 * 128 * 4);
}

TEST(Cost, BlocksWithGapsDoNotMoveTheGaps) {
  Builder k("k");
  const View x = k.view("x", DType::f32, {1024}), y = k.view("y", DType::f32, {64});
  const Value p = k.program_id(0);
  k.store(y, {p * 4}, k.load(x, {p * 64}, {.shape = {4}}));
  EXPECT_EQ(kernel_cost(k.finish({{{16, 1}}}), {}).work.bytes_read, 16 * 4 * 4);
}

TEST(Cost, DataDependentWorkIsMarkedInexactAndTakesTheDearerSide) {
  Builder k("k");
  const View n = k.view("n", DType::i64, {1}), y = k.view("y", DType::f32, {16});
  const Value one = k.literal(DType::f32, 1, {16});
  const auto chosen = k.branch(
      k.load(n, {0}) > 0, [&] { return std::vector<Value>{one}; },
      [&] { return std::vector<Value>{exp(one)}; });
  k.store(y, {0}, chosen[0]);
  const KernelCost c = kernel_cost(k.finish({{{1, 1}}}), {});
  EXPECT_FALSE(c.exact);
  EXPECT_EQ(c.work.special_ops, 16);
}

TEST(Cost, ConditionsOnTheProgramAreCountedPerProgram) {
  Builder k("k");
  const View y = k.view("y", DType::f32, {4, 16});
  const Value p = k.program_id(0);
  k.branch(
      p < 1,
      [&] {
        k.store(y, {p, 0}, exp(k.literal(DType::f32, 1, {16})));
        return std::vector<Value>{};
      },
      [] { return std::vector<Value>{}; });
  const KernelCost c = kernel_cost(k.finish({{{4, 1}}}), {});
  EXPECT_EQ(c.work.special_ops, 16);
  EXPECT_EQ(c.bytes_stored, 16 * 4);
  EXPECT_TRUE(c.exact);
}

TEST(Cost, OfRandomKernelsMovesNoMoreThanItAccesses) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const test::RandomKernel random = test::random_kernel(seed);
    const KernelCost c = kernel_cost(random.kernel, random.scalars);
    EXPECT_LE(c.work.bytes_read, c.bytes_loaded) << seed;
    EXPECT_LE(c.work.bytes_written, c.bytes_stored) << seed;
    EXPECT_GT(c.work.bytes_read, 0) << seed;
    EXPECT_GE(c.work.flops(), c.work.special_ops) << seed;
  }
}

}  // namespace
}  // namespace tilewright::tile
