// Edited kernels: whose calls run them.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

Tensor tripled(const Tensor& x) { return x * 3.f; }

TEST(Edit, ChangesTheFunctionThatWasEditedAndNoOtherOfTheSameGraph) {
  Context ctx({.device = "cpu"});
  auto one = compile(tripled);
  auto other = compile(tripled);
  const Tensor x = ctx.ones({100});
  EXPECT_EQ(one(x).to_vector<float>()[0], 3.f);
  EXPECT_EQ(other(x).to_vector<float>()[0], 3.f);

  std::string text = one.report().at(0).kernels.at(0).source;
  const std::size_t factor = text.find("3.f");
  ASSERT_NE(factor, std::string::npos) << text;
  text.replace(factor, 3, "5.f");
  one.edit(0, text, {x});
  EXPECT_EQ(one(x).to_vector<float>()[0], 5.f);
  EXPECT_EQ(one.report().at(0).kernels.at(0).source, text);
  EXPECT_EQ(other(x).to_vector<float>()[0], 3.f);
  EXPECT_EQ(compile(tripled)(x).to_vector<float>()[0], 3.f);
}

}  // namespace
}  // namespace tilewright
