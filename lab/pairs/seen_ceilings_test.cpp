// What a run learns of its ceilings, from made-up probes.
#include "pairs/seen_ceilings.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace tilewright::lab {
namespace {

perf::Ceilings memory_at(double rate, double l3 = 90e9) {
  return {"cpu",
          "a machine",
          {{"level.L3.bytes", 32e6, "/sys"},
           {"level.L3.copy_bytes_per_s", l3, "probe"},
           {"memory.copy_bytes_per_s", rate, "probe"}}};
}

runtime::Probed probed(double rate, std::string busy = "") {
  return {.ceilings = {"cpu", "a machine", {{"memory.copy_bytes_per_s", rate, "again"}}},
          .left_out = {},
          .busy = std::move(busy)};
}

class SeenCeilingsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
    ASSERT_TRUE(perf::write_ceilings(memory_at(30e9), path_));
  }
  double stored() const { return perf::read_ceilings(path_)->measurements[2].value; }
  std::string path_ = testing::TempDir() + "/tw_seen_ceilings/cpu.json";
};

TEST(SeenCeilings, TheBestSeenHoldsNotTheLastSeen) {
  SeenCeilings seen(memory_at(30e9), "stored", "");
  ASSERT_TRUE(seen.join(probed(20e9)));
  EXPECT_EQ(seen.ceilings().levels[1].copy, 30e9);
  EXPECT_EQ(seen.ceilings().source, "a machine, stored");
  ASSERT_TRUE(seen.join(probed(50e9)));
  ASSERT_TRUE(seen.join(probed(40e9)));
  EXPECT_EQ(seen.ceilings().levels[1].copy, 50e9);
  EXPECT_EQ(seen.ceilings().source, "a machine, stored, raised by probes beside the work");
}

TEST(SeenCeilings, ANearerLevelIsNeverSlowerThanAFartherOne) {
  SeenCeilings seen(memory_at(30e9, 25e9), "stored", "");
  EXPECT_EQ(seen.ceilings().levels[0].copy, 30e9);
  ASSERT_TRUE(seen.join(probed(50e9)));
  EXPECT_EQ(seen.ceilings().levels[0].copy, 50e9);
}

TEST_F(SeenCeilingsFile, IsRaisedByAQuietProbe) {
  SeenCeilings seen(memory_at(30e9), "stored", path_);
  ASSERT_TRUE(seen.join(probed(20e9)));
  EXPECT_EQ(stored(), 30e9);
  ASSERT_TRUE(seen.join(probed(50e9)));
  EXPECT_EQ(stored(), 50e9);
}

TEST_F(SeenCeilingsFile, IsLeftAloneByAProbeBesideOtherWorkWhichCountsForTheRun) {
  SeenCeilings seen(memory_at(30e9), "stored", path_);
  ASSERT_TRUE(seen.join(probed(50e9, "others took 43 % of the processors' time")));
  EXPECT_EQ(seen.ceilings().levels[1].copy, 50e9);
  EXPECT_EQ(stored(), 30e9);
}

TEST_F(SeenCeilingsFile, ThatHasGoneIsNotMadeOfAPart) {
  SeenCeilings seen(memory_at(30e9), "stored", path_);
  std::filesystem::remove(path_);
  ASSERT_TRUE(seen.join(probed(50e9)));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace tilewright::lab
