#include "base/inline_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace tilewright {
namespace {

// Elements that own memory show what is lost or freed twice.
using Numbers = InlineVector<std::shared_ptr<int>, 2>;

std::vector<int> values(const Numbers& numbers) {
  std::vector<int> out;
  for (const auto& n : numbers) out.push_back(*n);
  return out;
}

TEST(InlineVector, IsAVector) {
  std::mt19937 random(3);
  Numbers mine;
  std::vector<int> theirs;
  for (int step = 0; step < 2000; ++step) {
    const auto at = static_cast<std::ptrdiff_t>(random() % (theirs.size() + 1));
    if (random() % 2 == 0 && theirs.size() < 6) {
      mine.insert(mine.begin() + at, std::make_shared<int>(step));
      theirs.insert(theirs.begin() + at, step);
    } else if (at < std::ssize(theirs)) {
      mine.erase(mine.begin() + at);
      theirs.erase(theirs.begin() + at);
    }
    ASSERT_EQ(values(mine), theirs);
    ASSERT_EQ(mine.empty(), theirs.empty());
    if (!theirs.empty()) {
      ASSERT_EQ(*mine.front(), theirs.front());
      ASSERT_EQ(*mine.back(), theirs.back());
    }
  }
}

TEST(InlineVector, KeepsNothingOfWhatIsGone) {
  for (const int count : {1, 2, 3, 5}) {
    Numbers from;
    std::vector<std::weak_ptr<int>> seen;
    for (int i = 0; i < count; ++i) {
      from.push_back(std::make_shared<int>(i));
      seen.push_back(from.back());
    }
    const Numbers copy = from;
    Numbers moved = std::move(from);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): that is what is asked
    EXPECT_EQ(values(moved), values(copy));
    for (const auto& one : seen) EXPECT_EQ(one.use_count(), 2);
    while (!moved.empty()) moved.erase(moved.begin());
    for (const auto& one : seen) EXPECT_EQ(one.use_count(), 1);
  }
}

}  // namespace
}  // namespace tilewright
