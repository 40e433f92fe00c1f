// Results take the room that a product's blocks leave, and now and then a block's.
#include "backends/cuda/schedule/result_stages.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

constexpr Index kKibibyte = 1 << 10;

// Blocks of 128x192 by 64 in 16 bits, 40 KiB, and two warpgroups.
StageRoom room(Index results, Index tiles, Index block_kib = 40) {
  return {.bytes = 225 * kKibibyte,
          .block_bytes = block_kib * kKibibyte,
          .blocks = 5,
          .groups = 2,
          .results = results,
          .tiles = tiles};
}

void expect(const ResultStages& way, int blocks, int stages, Index slots) {
  EXPECT_EQ(way.blocks, blocks);
  EXPECT_EQ(way.stages, stages);
  EXPECT_EQ(way.slots, slots);
}

TEST(ResultStages, LeaveThePipelineItsBlocks) {
  const auto plain = result_stages(room(1, 0));
  ASSERT_EQ(plain.size(), 1U);
  expect(plain[0], 4, 4, 1);
  const auto fetched = result_stages(room(2, 2));
  ASSERT_EQ(fetched.size(), 1U);
  expect(fetched[0], 4, 4, 2);
}

TEST(ResultStages, TakeABlockWhereThatMakesRoomForMore) {
  const auto ways = result_stages(room(2, 3));
  ASSERT_EQ(ways.size(), 2U);
  expect(ways[0], 4, 4, 2);
  expect(ways[1], 3, 6, 3);
  const auto results = result_stages(room(3, 0));
  ASSERT_EQ(results.size(), 1U);
  expect(results[0], 3, 6, 3);
}

TEST(ResultStages, AreNoneWhereResultsHaveNoRoom) {
  EXPECT_TRUE(result_stages(room(5, 0)).empty());
  EXPECT_TRUE(result_stages(room(1, 0, 72)).empty());
}

}  // namespace
}  // namespace tilewright::cuda
