#include "tile/sampled_programs.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright::tile {
namespace {

// What a causal mask leaves of each row of programs differs along the first axis alone, whose length divides
// that of the parts.
TEST(SampledPrograms, StandAtAllPlacesOfWhatRepeats) {
  for (const Index rows : {4, 6, 8, 16}) {
    std::vector<int> at(static_cast<std::size_t>(rows));
    double sum = 0;
    const auto all = sampled_programs({1, rows, 256}, 128);
    for (const std::vector<Index>& program : all) {
      ++at[static_cast<std::size_t>(program[1])];
      sum += static_cast<double>(program[1]);
    }
    EXPECT_NEAR(sum / 128, static_cast<double>(rows - 1) / 2, 0.02 * static_cast<double>(rows)) << rows;
    for (const int count : at) EXPECT_NEAR(count, 128.0 / static_cast<double>(rows), 4) << rows;
  }
}

TEST(SampledPrograms, AreAllWhereAsManyAreAsked) {
  const auto all = sampled_programs({3, 5}, 15);
  EXPECT_EQ(std::set<std::vector<Index>>(all.begin(), all.end()).size(), 15u);
  EXPECT_EQ(all.front(), (std::vector<Index>{0, 0}));
  EXPECT_EQ(all.back(), (std::vector<Index>{2, 4}));
}

}  // namespace
}  // namespace tilewright::tile
