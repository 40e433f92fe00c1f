// The nodes that calls of checkpointed functions compute, by the marks around these.
#include "passes/fuse/checkpoints.h"

#include "ir/text.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

std::vector<int> calls_of(const std::string& text) {
  return checkpointed_calls(ir::parse(text, ops::all_ops()).value());
}

TEST(CheckpointedCalls, AreThereWhereMarksAre) {
  EXPECT_EQ(calls_of(R"(graph @g(%x0: f32[4]) -> f32[4] {
  %1 = exp %x0 : f32[4]
  return %1
}
)"),
            std::vector<int>());
}

// What gradients make of a call's values is none of it, and what comes of captured tensors alone is neither.
TEST(CheckpointedCalls, ComputeWhatLiesBetweenTheirMarks) {
  const std::vector<int> wanted = {0, 0, 0, 1, 0, 1, 0, 0, 0};
  EXPECT_EQ(calls_of(R"(graph @g(%x0: f32[4], %x1: f32[4]) -> (f32[4], f32[4]) {
  %2 = checkpoint %x0 {call=0, edge="in"} : f32[4]
  %3 = exp %2 : f32[4]
  %4 = sqrt %x1 : f32[4]
  %5 = mul %3, %4 : f32[4]
  %6 = checkpoint %5 {call=0, edge="out"} : f32[4]
  %7 = sin %6 : f32[4]
  %8 = add %7, %3 : f32[4]
  return %6, %8
}
)"),
            wanted);
}

TEST(CheckpointedCalls, ThatFollowEachOtherAreTwo) {
  const std::vector<int> wanted = {0, 0, 1, 0, 0, 2, 0};
  EXPECT_EQ(calls_of(R"(graph @g(%x0: f32[4]) -> f32[4] {
  %1 = checkpoint %x0 {call=0, edge="in"} : f32[4]
  %2 = exp %1 : f32[4]
  %3 = checkpoint %2 {call=0, edge="out"} : f32[4]
  %4 = checkpoint %3 {call=2, edge="in"} : f32[4]
  %5 = exp %4 : f32[4]
  %6 = checkpoint %5 {call=2, edge="out"} : f32[4]
  return %6
}
)"),
            wanted);
}

// Several derivatives in one program count their calls from 0 each.
TEST(CheckpointedCalls, OfOneNumberAreTwoWhereTheyShareNoValue) {
  const std::vector<int> wanted = {0, 0, 0, 0, 1, 2, 0, 0};
  EXPECT_EQ(calls_of(R"(graph @g(%x0: f32[4], %x1: f32[4]) -> (f32[4], f32[4]) {
  %2 = checkpoint %x0 {call=0, edge="in"} : f32[4]
  %3 = checkpoint %x1 {call=0, edge="in"} : f32[4]
  %4 = exp %2 : f32[4]
  %5 = exp %3 : f32[4]
  %6 = checkpoint %4 {call=0, edge="out"} : f32[4]
  %7 = checkpoint %5 {call=0, edge="out"} : f32[4]
  return %6, %7
}
)"),
            wanted);
}

TEST(CheckpointedCalls, OfSeveralArgumentsAreOne) {
  const std::vector<int> wanted = {0, 0, 0, 0, 1, 1, 1, 0};
  EXPECT_EQ(calls_of(R"(graph @g(%x0: f32[4], %x1: f32[4]) -> f32[4] {
  %2 = checkpoint %x0 {call=0, edge="in"} : f32[4]
  %3 = checkpoint %x1 {call=0, edge="in"} : f32[4]
  %4 = exp %2 : f32[4]
  %5 = exp %3 : f32[4]
  %6 = mul %4, %5 : f32[4]
  %7 = checkpoint %6 {call=0, edge="out"} : f32[4]
  return %7
}
)"),
            wanted);
}

}  // namespace
}  // namespace tilewright::passes
