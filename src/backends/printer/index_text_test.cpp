#include "backends/printer/index_text.h"

#include <gtest/gtest.h>

namespace tilewright::printer {
namespace {

TEST(IndexText, ComputesNumbersAndLeavesOutZerosAndOnes) {
  const IndexText program = "program";
  EXPECT_EQ((program / (IndexText(1) * 16)).str(), "program / 16");
  EXPECT_EQ((program / 1 % 16).str(), "program % 16");
  EXPECT_EQ((program % 1).str(), "0");
  EXPECT_EQ((program * 1 + 0).str(), "program");
  EXPECT_EQ((program * 0 + 3).str(), "3");
  EXPECT_EQ((IndexText(32) - 1 - program).str(), "31 - program");
  EXPECT_EQ(product({1, 32, 16}).str(), "512");
  EXPECT_EQ((program + -127).str(), "program - 127");
  EXPECT_EQ((program - -1).str(), "program + 1");
}

TEST(IndexText, WritesBracketsWhereTheyAreNeeded) {
  const IndexText a = "a", b = "b", c = "c";
  EXPECT_EQ(((a + b) * c).str(), "(a + b) * c");
  EXPECT_EQ((a + b * c).str(), "a + b * c");
  EXPECT_EQ((a * b / c).str(), "a * b / c");
  EXPECT_EQ((a / (b * c)).str(), "a / (b * c)");
  EXPECT_EQ((a * (b / c)).str(), "a * (b / c)");
  EXPECT_EQ((a - (b - c)).str(), "a - (b - c)");
  EXPECT_EQ((a + IndexText::expression("-b", IndexText::Binding::sum)).str(), "a + (-b)");
  EXPECT_EQ((a * IndexText(-2)).str(), "a * (-2)");
}

TEST(IndexText, ATextBindsAsItsWriterSays) {
  const IndexText sum = IndexText::expression("a + b", IndexText::Binding::sum),
                  product = IndexText::expression("a * b", IndexText::Binding::product);
  EXPECT_EQ((sum * 4).str(), "(a + b) * 4");
  EXPECT_EQ((product * 4).str(), "a * b * 4");
  EXPECT_EQ((IndexText("f(a, b + c)[i + 1]") * 4).str(), "f(a, b + c)[i + 1] * 4");
  EXPECT_EQ((4 * IndexText("12")).number(), std::nullopt);  // a name to whoever brings it as one
}

TEST(IndexText, ASignBehindAPlusStandsInBrackets) {
  EXPECT_EQ(IndexText(-3).added(), "(-3)");
  EXPECT_EQ((IndexText(-3) + "a").added(), "(-3 + a)");
  EXPECT_EQ((IndexText(-3) * "a").added(), "(-3) * a");
  EXPECT_EQ((IndexText("a") - 3).added(), "a - 3");
}

TEST(IndexText, WritesWideNumbersAs64Bits) {
  EXPECT_EQ(IndexText(Index{1} << 31).str(), "2147483648ll");
  EXPECT_EQ((IndexText("a") * (Index{1} << 31)).str(), "a * 2147483648ll");
}

}  // namespace
}  // namespace tilewright::printer
