#include "backends/cuda/print/text.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(Text, BracketsStandWhereAnExpressionBindsLess) {
  EXPECT_EQ(binding("a"), 9);
  EXPECT_EQ(binding("f(a + b)[c - 1]"), 9);
  EXPECT_EQ(binding("-x"), 9);
  EXPECT_EQ(binding("a * b"), 8);
  EXPECT_EQ(binding("a * b - c"), 7);
  EXPECT_EQ(binding("a + b <= c"), 5);
  EXPECT_EQ(binding("a < b && c"), 2);
  EXPECT_EQ(binding("a ? b : c"), 0);
  EXPECT_EQ(wrapped_below("a * b", 8), "a * b");
  EXPECT_EQ(wrapped_below("a + b", 8), "(a + b)");
}

TEST(Text, NamesOfABlockAreFreeBehindIt) {
  const tile::Kernel kernel;
  const printer::LoopPlan plan;
  KernelNames names(kernel, plan);
  Text text(0, names);
  EXPECT_EQ(text.local("x"), "x");
  text.open_block();
  EXPECT_EQ(text.local("x"), "x_2");
  EXPECT_EQ(text.local("y"), "y");
  text.close();
  EXPECT_EQ(text.local("y"), "y");
  EXPECT_EQ(text.local("x"), "x_2");
}

}  // namespace
}  // namespace tilewright::cuda
