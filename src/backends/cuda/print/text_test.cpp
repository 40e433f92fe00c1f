// Brackets, literals, and blocks with their names.
#include "backends/cuda/print/text.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(Text, BracketsStandWhereAnExpressionBindsLess) {
  const TypedText sum{"a + b", DType::i32, 1, Binding::sum}, call{"f(a)", DType::i32, 0, Binding::call};
  EXPECT_EQ(wrapped_below(sum, Binding::sum), "a + b");
  EXPECT_EQ(wrapped_below(sum, Binding::product), "(a + b)");
  EXPECT_EQ(wrapped(call), "f(a)");
  EXPECT_EQ(wrapped({"x", DType::i32}), "x");
  EXPECT_EQ(wrapped({"-x", DType::i32, 1, Binding::signed_name}), "(-x)");
}

TEST(Text, ALiteralSaysItsSignAndItsNumber) {
  const TypedText negative = literal_text(DType::i64, {.i = -5}, DType::i32);
  EXPECT_EQ(negative.text, "-5");
  EXPECT_EQ(negative.number, -5);
  EXPECT_EQ(wrapped(negative), "(-5)");
  EXPECT_EQ(wrapped(literal_text(DType::i8, {.i = -5}, DType::i8)), "i8(-5)");
  EXPECT_EQ(literal_text(DType::i8, {.i = -5}, DType::i8).number, std::nullopt);
  EXPECT_EQ(literal_text(DType::i64, {.i = Index{1} << 40}, DType::i64).number, std::nullopt);
  EXPECT_EQ(wrapped(literal_text(DType::f32, {.f = -1}, DType::f32)), "(-1.0f)");
  EXPECT_EQ(wrapped(literal_text(DType::f32, {.f = 1}, DType::f32)), "1.0f");
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
  text.open_if_needed("if (r < 2 && (r + g) * 2 < n)");
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
