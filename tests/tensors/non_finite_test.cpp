// Which operation made the first NaN or infinity of a result.
#include <tilewright/tensor/non_finite.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <limits>

#include "support/errors.h"

namespace tilewright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Layer {
  Tensor weight;
  std::optional<Tensor> bias;
  TILEWRIGHT_FIELDS(weight, bias)
};

class NonFiniteTest : public testing::Test {
 protected:
  Tensor row(const std::vector<double>& values, DType dtype = DType::f32) {
    return ctx_.from(values, {static_cast<Index>(values.size())}, dtype);
  }
  Context ctx_{{.device = "reference", .cache_directory = ""}};
};

TEST_F(NonFiniteTest, FiniteResultsHaveNone) {
  EXPECT_FALSE(find_non_finite([](const Tensor& x) { return exp(x); })(row({1, 2})));
}

TEST_F(NonFiniteTest, TheFirstOfAChainIsTold) {
  const auto found =
      find_non_finite([](const Tensor& x) { return sum(exp(x) * 0.0 + 1.0); })(row({1, 200, 2}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operation, "exp");
  EXPECT_EQ(found->value.infinities, 1);
  EXPECT_EQ(found->value.elements, 3);
  EXPECT_NE(found->location.find("non_finite_test.cpp:"), std::string::npos) << found->location;
  ASSERT_EQ(found->operands.size(), 1U);
  EXPECT_EQ(found->operands[0].most, 200);
  const std::string text = to_string(*found);
  for (const char* part : {"exp (at ", "made 1 infinity among 3 elements, f32[3] of exp",
                           "its operand f32[3] of argument 0 lies between 1 and 200"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(NonFiniteTest, ValuesOverflowInTheirOwnType) {
  const auto square = [](const Tensor& x) { return x * x; };
  EXPECT_FALSE(find_non_finite(square)(row({300})));
  const auto found = find_non_finite(square)(row({300}, DType::f16));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operation, "mul");
}

TEST_F(NonFiniteTest, WhatReachesNoResultDoesNotCount) {
  const auto safe = [](const Tensor& x) { return where(x > 0.0, log(x), 0.0); };
  EXPECT_FALSE(find_non_finite(safe)(row({1, 0, -1})));
}

TEST_F(NonFiniteTest, AnInfinityThatIsWrittenDownIsMeant) {
  const auto masked = [](const Tensor& x) { return softmax(where(x > 0.0, x, -kInfinity)); };
  EXPECT_FALSE(find_non_finite(masked)(row({1, -1})));
  const auto found = find_non_finite(masked)(row({-1, -2}));  // nothing is left of the row
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operation, "sub") << to_string(*found);
  EXPECT_GT(found->value.nans, 0);
}

TEST_F(NonFiniteTest, WhatComesInIsCalledByItsName) {
  const Layer layer{row({1, std::nan("")}), row({1, 1})};
  const auto found = find_non_finite([](const Tensor& x, const Layer& l) { return x * l.weight + *l.bias; })(
      row({1, 2}), layer);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found),
            "argument 1, .weight had 1 NaN among 2 elements, f32[2] of argument 1, .weight");
}

TEST_F(NonFiniteTest, GradientsAreLookedIntoAsWell) {
  const auto found =
      find_non_finite(value_and_grad([](const Tensor& x) { return sum(sqrt(x)); }))(row({1, 0}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value.infinities, 1);
}

TEST_F(NonFiniteTest, RandomNumbersAreThoseOfTheNextCall) {
  const auto draws = [&](const Tensor& x) { return x + ctx_.rand({2}); };
  ctx_.set_seed(5);
  const std::vector<double> want = draws(row({0, 0})).to_vector<double>();
  ctx_.set_seed(5);
  EXPECT_FALSE(find_non_finite(draws)(row({0, 0})));
  EXPECT_EQ(draws(row({0, 0})).to_vector<double>(), want);
}

TEST_F(NonFiniteTest, AHostReadIsAnError) {
  test::expect_says([&] { (void)find_non_finite([](const Tensor& x) { return x * x.item(); })(row({2})); },
                    {"looked into for NaN", "non_finite_test.cpp:"});
}

}  // namespace
}  // namespace tilewright
