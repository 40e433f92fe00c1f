// What a smaller arena costs a training step, as predicted for an H200.
#include "passes/pipeline.h"
#include "support/h200_target.h"
#include "support/training_step.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

TEST(MemoryFit, LessMemoryNeverTakesLessTime) {
  const ir::Graph step = graph_of(TrainingStep{.layers = 6, .batch = 8, .compute = DType::bf16});
  const tile::Target target = h200_target();
  const Index whole = passes::run_pipeline(step, target).plan.arena_bytes;
  double least_us = 0;
  for (const double part : {1.0, 0.9, 0.8, 0.7, 0.6, 0.5}) {
    const auto bytes = static_cast<Index>(static_cast<double>(whole) * part);
    const passes::Compiled compiled = passes::run_pipeline(step, target, {.arena_bytes = bytes});
    ASSERT_TRUE(compiled.memory.has_value());
    EXPECT_TRUE(compiled.memory->fits) << part;
    EXPECT_LE(compiled.plan.arena_bytes, bytes);
    EXPECT_EQ(compiled.memory->bytes_before, whole);
    EXPECT_GE(compiled.memory->more_us, least_us) << part;
    least_us = compiled.memory->more_us;
    if (part == 0.5) {
      EXPECT_LE(compiled.memory->more_us, 0.25 * compiled.memory->all_us)
          << passes::to_string(*compiled.memory);
    }
  }
  EXPECT_GT(least_us, 0);
}

// The plan for no memory at all is the smallest that was found, and says so.
TEST(MemoryFit, OfNothingIsTheLeast) {
  const ir::Graph step = graph_of(TrainingStep{.layers = 2, .batch = 4, .compute = DType::bf16});
  const passes::Compiled compiled = passes::run_pipeline(step, h200_target(), {.arena_bytes = 0});
  EXPECT_FALSE(compiled.memory->fits);
  EXPECT_EQ(compiled.memory->bytes, compiled.plan.arena_bytes);
  EXPECT_LT(compiled.memory->bytes, compiled.memory->bytes_before);
  const passes::Compiled again =
      passes::run_pipeline(step, h200_target(), {.arena_bytes = compiled.plan.arena_bytes});
  EXPECT_TRUE(again.memory->fits);
}

}  // namespace
}  // namespace tilewright::test
