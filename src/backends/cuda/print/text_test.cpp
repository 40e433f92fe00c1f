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

TEST(Text, LoopsAndConditionsWithNothingInThemAreTakenBack) {
  const tile::Kernel kernel;
  const printer::LoopPlan plan;
  KernelNames names(kernel, plan);
  Text text(0, names);
  text.line("first();");
  text.unrolled("r", 4);
  text.open("if (r < 2 && (r + g) * 2 < n)");
  text.close();
  text.close();
  text.open("if (wait(barrier))");
  text.close();
  text.open_block();
  text.close();
  text.unrolled("c", 2);
  text.line("second();");
  text.close();
  EXPECT_EQ(text.str(),
            "first();\nif (wait(barrier)) {\n}\n{\n}\n#pragma unroll\nfor (int c = 0; c < 2; ++c) {\n  "
            "second();\n}\n");
}

}  // namespace
}  // namespace tilewright::cuda
