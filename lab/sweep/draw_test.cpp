// Draws: the same everywhere, and sizes as programs have them.
#include "sweep/draw.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright::sweep {
namespace {

TEST(Draw, IsTheSameOnEveryMachine) {
  Draw draw("attention structure", 17);
  EXPECT_EQ(draw.word(), 1028397695u);
  EXPECT_EQ(draw.integer(0, 1000), 632);
}

TEST(Draw, StreamsOfOtherNamesAndSeedsDiffer) {
  std::set<std::uint32_t> first;
  for (const char* name : {"a", "b"})
    for (std::uint64_t seed : {1, 2}) first.insert(Draw(name, seed).word());
  EXPECT_EQ(first.size(), 4u);
}

TEST(Draw, LogUniformGivesEachOctaveItsShare) {
  Draw draw("octaves", 1);
  int low = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = draw.log_uniform(1, 16);
    ASSERT_GE(x, 1);
    ASSERT_LE(x, 16);
    low += x < 4 ? 1 : 0;
  }
  EXPECT_NEAR(low, 5000, 200);
}

TEST(Draw, ExtentsAreNearAndOfEveryKind) {
  Draw draw("extents", 1);
  int powers = 0, eights = 0, odd = 0;
  for (int i = 0; i < 1000; ++i) {
    const Index n = draw.extent(900);
    ASSERT_GT(n, 700);
    ASSERT_LT(n, 1450);
    powers += (n & (n - 1)) == 0 ? 1 : 0;
    eights += n % 64 == 0 ? 1 : 0;
    odd += n % 2 == 1 ? 1 : 0;
  }
  EXPECT_GT(powers, 250);
  EXPECT_GT(eights, powers + 200);
  EXPECT_GT(odd, 80);
}

TEST(Draw, ShapesHoldAboutAsManyElementsAsWereAskedFor) {
  Draw draw("shapes", 1);
  for (int rank = 1; rank <= 4; ++rank) {
    for (int i = 0; i < 100; ++i) {
      const Shape shape = draw.shape(1e6, rank);
      ASSERT_EQ(shape.rank(), rank);
      ASSERT_GT(static_cast<double>(shape.size()), 4e5) << to_string(shape);
      ASSERT_LT(static_cast<double>(shape.size()), 2.5e6) << to_string(shape);
    }
  }
}

}  // namespace
}  // namespace tilewright::sweep
