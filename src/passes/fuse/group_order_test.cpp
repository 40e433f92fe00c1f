// Paths between groups stay known while groups are merged.
#include "passes/fuse/group_order.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

// 0 → 1 → 3, 0 → 2 → 3, 3 → 4
GroupOrder diamond() {
  GroupOrder order(5);
  for (auto [writer, reader] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}})
    order.add_edge(writer, reader);
  return order;
}

TEST(GroupOrder, APathThroughAThirdIsOneThatLeavesBoth) {
  const GroupOrder order = diamond();
  EXPECT_FALSE(order.has_path_through_third(0, 1));
  EXPECT_TRUE(order.has_path_through_third(0, 3));
  EXPECT_TRUE(order.has_path_through_third(1, 4));
  EXPECT_FALSE(order.has_path_through_third(1, 2));
  EXPECT_FALSE(order.has_path_through_third(3, 0));
}

TEST(GroupOrder, MergedGroupsReadAndAreReadForBoth) {
  GroupOrder order = diamond();
  order.merge(0, 1);
  EXPECT_EQ(order.readers(0), (std::vector<int>{2, 3}));
  EXPECT_EQ(order.writers(3), (std::vector<int>{0, 2}));
  EXPECT_TRUE(order.has_path_through_third(0, 3));  // through 2
  order.merge(0, 2);
  EXPECT_FALSE(order.has_path_through_third(0, 3));
  EXPECT_EQ(order.writers(3), (std::vector<int>{0}));
}

// 2 is merged into 0 from behind 1 and 3, of which 0 reaches one: that one comes after both then.
TEST(GroupOrder, WhatTheEarlierOneReachesMovesBehindBoth) {
  GroupOrder order(6);
  for (auto [writer, reader] : {std::pair{0, 1}, {3, 4}, {4, 5}, {1, 5}}) order.add_edge(writer, reader);
  ASSERT_FALSE(order.has_path_through_third(0, 4) || order.has_path_through_third(4, 0));
  order.merge(0, 4);
  EXPECT_TRUE(order.has_path_through_third(0, 5));  // through 1
  EXPECT_TRUE(order.has_path_through_third(3, 1));  // through what was merged
  EXPECT_FALSE(order.has_path_through_third(1, 3));
}

}  // namespace
}  // namespace tilewright::passes
