// The share of the processors that others take, from made-up looks at /proc/stat.
#include "runtime/other_work.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

namespace tilewright::runtime {
namespace {

const double kTick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));

// Two processors; of the first the ticks are given, the second was idle.
std::string stat_text(int user, int idle, int steal) {
  const std::string first = fmt::format("{} 0 0 {} 0 0 0 {} 0 0", user, idle, steal);
  const int all = user + idle + steal;
  return fmt::format("cpu  {} 0 0 {} 0 0 0 {} 0 0\ncpu0 {}\ncpu1 0 0 0 {} 0 0 0 0 0 0\nintr 5\n", user,
                     idle + all, steal, first, all);
}

ProcessorLook look(const std::string& text, double own_ticks, const std::vector<int>& ours = {0, 1}) {
  return {processor_time(text, ours), processor_time(text, {}), own_ticks * kTick};
}

TEST(OtherWork, TimeThatAProcessorWorkedOrWasTakenAwayIsTaken) {
  const auto time = processor_time("cpu  10 1 2 100 7 3 4 5 9 9\n", {});
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->taken_s, 25 * kTick);
  EXPECT_DOUBLE_EQ(time->all_s, 132 * kTick);
  EXPECT_FALSE(processor_time("intr 5\n", {}));
  EXPECT_FALSE(processor_time("cpu  1 2 3 4\n", {7}));
}

TEST(OtherWork, OnesOwnWorkIsNoNeighbour) {
  const ProcessorLook before = look(stat_text(0, 0, 0), 0);
  EXPECT_DOUBLE_EQ(share_of_others(before, look(stat_text(100, 0, 0), 100)), 0);
  EXPECT_DOUBLE_EQ(share_of_others(before, look(stat_text(100, 0, 0), 0)), 0.5);
  EXPECT_DOUBLE_EQ(share_of_others(before, look(stat_text(100, 100, 0), 60)), 0.1);
}

TEST(OtherWork, WhatTheHypervisorTookIsANeighbour) {
  EXPECT_DOUBLE_EQ(share_of_others(look(stat_text(0, 0, 0), 0), look(stat_text(60, 0, 40), 60)), 0.2);
}

TEST(OtherWork, ANeighbourOnOurProcessorCountsByItsShareOfOurs) {
  const auto of = [](int user, int idle, double own) { return look(stat_text(user, idle, 0), own, {0}); };
  EXPECT_DOUBLE_EQ(share_of_others(of(0, 0, 0), of(50, 50, 10)), 0.4);
}

TEST(OtherWork, NothingKnownIsNotBusy) {
  EXPECT_EQ(share_of_others({}, {}), 0);
  const ProcessorLook same = look(stat_text(5, 5, 5), 0);
  EXPECT_EQ(share_of_others(same, same), 0);
  EXPECT_EQ(busy_text(0), "");
  EXPECT_EQ(busy_text(kBusyShare), "");
  EXPECT_EQ(busy_text(0.43), "others took 43 % of the processors' time");
}

TEST(OtherWork, ThisMachineCanBeLookedAt) {
  const ProcessorLook look = look_at_processors();
  ASSERT_TRUE(look.ours);
  ASSERT_TRUE(look.machine);
  EXPECT_GE(look.machine->all_s, look.ours->all_s * 0.99);
  EXPECT_GT(look.own_s, 0);
}

}  // namespace
}  // namespace tilewright::runtime
