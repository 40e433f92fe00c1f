// The best seen of each figure, and L1 ≥ L2 ≥ L3 ≥ memory.
#include <tilewright/perf/best_ceilings.h>

#include <gtest/gtest.h>

namespace tilewright::perf {
namespace {

double value_of(const Ceilings& ceilings, const std::string& what) {
  for (const Measurement& m : ceilings.measurements)
    if (m.what == what) return m.value;
  ADD_FAILURE() << "no " << what;
  return 0;
}

std::string how_of(const Ceilings& ceilings, const std::string& what) {
  for (const Measurement& m : ceilings.measurements)
    if (m.what == what) return m.how;
  return "";
}

Ceilings machine(double l1, double l2, double l3, double memory) {
  return {"cpu",
          "a machine",
          {{"level.L1.bytes", 32768, "/sys"},
           {"level.L1.copy_bytes_per_s", l1, "first"},
           {"level.L2.copy_bytes_per_s", l2, "first"},
           {"level.L3.copy_bytes_per_s", l3, "first"},
           {"memory.copy_bytes_per_s", memory, "first"}}};
}

TEST(BestCeilings, OfTwoProbesTheBetterFigureHoldsWhicheverCameLast) {
  const Ceilings quick{"cpu",
                       "a machine",
                       {{"memory.copy_bytes_per_s", 58e9, "quick minute"},
                        {"vector.f32", 200e9, "quick minute"},
                        {"launch_s", 2e-6, "quick minute"}}};
  const Ceilings slow{"cpu",
                      "a machine",
                      {{"memory.copy_bytes_per_s", 31e9, "slow minute"},
                       {"vector.f32", 201e9, "slow minute"},
                       {"launch_s", 9e-6, "slow minute"}}};
  for (const Ceilings& best : {best_of(quick, slow), best_of(slow, quick)}) {
    EXPECT_EQ(value_of(best, "memory.copy_bytes_per_s"), 58e9);
    EXPECT_EQ(how_of(best, "memory.copy_bytes_per_s"), "quick minute");
    EXPECT_EQ(value_of(best, "vector.f32"), 201e9);
    EXPECT_EQ(value_of(best, "launch_s"), 2e-6);
    EXPECT_EQ(best.measurements.size(), 3u);
  }
}

TEST(BestCeilings, WhatIsToldAndNotMeasuredIsTheLatest) {
  const Ceilings old{"cpu", "old", {{"memory_bytes", 32e9, ""}, {"matrix_beside_vector", 1, ""}}};
  const Ceilings now{"cpu", "now", {{"memory_bytes", 16e9, ""}, {"matrix_beside_vector", 0, ""}}};
  const Ceilings best = best_of(old, now);
  EXPECT_EQ(value_of(best, "memory_bytes"), 16e9);
  EXPECT_EQ(value_of(best, "matrix_beside_vector"), 0);
  EXPECT_EQ(best.title, "now");
}

TEST(BestCeilings, APartAloneLeavesTheRestAsItWas) {
  const Ceilings best =
      best_of(machine(4, 3, 2, 1), {"cpu", "a machine", {{"memory.copy_bytes_per_s", 1.5, "again"}}});
  EXPECT_EQ(value_of(best, "memory.copy_bytes_per_s"), 1.5);
  EXPECT_EQ(value_of(best, "level.L2.copy_bytes_per_s"), 3);
}

TEST(BestCeilings, ALevelSlowerThanOneFartherOutIsFound) {
  EXPECT_TRUE(out_of_order(machine(4, 3, 2, 1)).empty());
  EXPECT_TRUE(out_of_order(machine(1, 1, 1, 1)).empty());
  const std::vector<OutOfOrder> wrong = {{"level.L2.copy_bytes_per_s", "level.L3.copy_bytes_per_s", 1.5, 2}};
  EXPECT_EQ(out_of_order(machine(4, 1.5, 2, 1)), wrong);
  EXPECT_TRUE(out_of_order(machine(4, 1.5, 2, 1), 1.5).empty()) << "within the slack";
  EXPECT_EQ(out_of_order(machine(1, 2, 3, 9)).size(), 3u);
}

TEST(BestCeilings, EveryLevelIsRaisedToWhatComesFromFartherOut) {
  const Ceilings raised = in_order(machine(4, 1, 2, 3));
  EXPECT_EQ(value_of(raised, "level.L1.copy_bytes_per_s"), 4);
  EXPECT_EQ(value_of(raised, "level.L2.copy_bytes_per_s"), 3);
  EXPECT_EQ(value_of(raised, "level.L3.copy_bytes_per_s"), 3);
  EXPECT_EQ(value_of(raised, "memory.copy_bytes_per_s"), 3);
  EXPECT_TRUE(out_of_order(raised).empty());
  EXPECT_EQ(how_of(raised, "level.L2.copy_bytes_per_s"),
            "first; it found 1 here, less than memory.copy_bytes_per_s");
  EXPECT_EQ(how_of(raised, "level.L1.copy_bytes_per_s"), "first");
}

TEST(BestCeilings, SharedMemoryOfAGpuIsNoLevelOnTheWay) {
  const Ceilings gpu{"cuda:0",
                     "a GPU",
                     {{"level.shared.copy_bytes_per_s", 1, ""},
                      {"level.L2.copy_bytes_per_s", 2, ""},
                      {"memory.copy_bytes_per_s", 1.5, ""}}};
  EXPECT_TRUE(out_of_order(gpu).empty());
}

}  // namespace
}  // namespace tilewright::perf
