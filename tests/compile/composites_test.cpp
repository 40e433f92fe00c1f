// Functions that are written in others (tensor/composites.h): values, gradients, one operation each, the
// user's line.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright {
namespace {

class Composites : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu"}};
  const std::vector<double> numbers_{1.5, -2, 0.25, 4, 3, -7, 0.5, 1, 2, -1, 6, 5};

  // The deviation of one row of four numbers.
  double deviation(std::size_t row, double ddof) const {
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < 4; ++i) mean += numbers_[4 * row + i] / 4;
    for (std::size_t i = 0; i < 4; ++i) squares += std::pow(numbers_[4 * row + i] - mean, 2);
    return std::sqrt(squares / (4 - ddof));
  }
};

TEST_F(Composites, AreWhatTheyAreWrittenIn) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Tensor x = ctx_.from(numbers_, {3, 4}, dtype);
    const double unit = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-20;
    for (const double ddof : {0.0, 1.0}) {
      const Tensor deviations = std(x, {1}, static_cast<Index>(ddof));
      EXPECT_EQ(deviations.dtype(), dtype);
      for (std::size_t row = 0; row < 3; ++row)
        EXPECT_NEAR(deviations.to_vector<double>()[row], deviation(row, ddof), deviation(row, ddof) * unit);
    }
    const Tensor norms = norm(x, {1}, Keep::yes);
    EXPECT_EQ(norms.shape(), (Shape{3, 1}));
    EXPECT_NEAR(norms.to_vector<double>()[0], std::sqrt(1.5 * 1.5 + 4 + 0.0625 + 16), 5 * unit);
  }
  EXPECT_EQ(norm(ctx_.from(std::vector<std::int32_t>{3, 4}, {2})).item(), 5);
  EXPECT_EQ(permute_dims(ctx_.zeros({2, 3}), {1, 0}).shape(), (Shape{3, 2}));
  EXPECT_EQ(expand_dims(ctx_.zeros({2, 3}), 1).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(clip(ctx_.scalar(5), -1, 2).item(), 2);
}

TEST_F(Composites, SquareWhatIsNarrowInF32) {
  const Tensor x = ctx_.full({2, 8}, 20000, DType::f16);   // its square is past f16's largest number, 65,504
  EXPECT_EQ(norm(x, {1}).to_vector<float>()[1], 56576.f);  // 20,000 √8 = 56,568.5 in steps of 32
  EXPECT_EQ(norm(ctx_.full({2}, 1 << 20, DType::i64)).item(), static_cast<float>(std::sqrt(2.0) * (1 << 20)));
}

TEST_F(Composites, HaveTheGradientsOfTheirParts) {
  const Tensor x = ctx_.from(numbers_, {3, 4}, DType::f64);
  const auto result = value_and_grad([](const Tensor& t) { return sum(std(t, {1}, 1)); })(x);
  const std::vector<double> slope = result.second.to_vector<double>();
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t row = i / 4;
    double mean = 0;
    for (std::size_t j = 0; j < 4; ++j) mean += numbers_[4 * row + j] / 4;
    EXPECT_NEAR(slope[i], (numbers_[i] - mean) / (3 * deviation(row, 1)), 1e-12);
  }
}

TEST_F(Composites, HaveNoSlopeWhereTheRootHasAnInfiniteOne) {
  const auto deviation = value_and_grad([](const Tensor& t) { return sum(std(t, {1})); })(ctx_.ones({2, 3}));
  EXPECT_EQ(deviation.second.to_vector<float>(), std::vector<float>(6, 0));
  const auto length = value_and_grad([](const Tensor& t) { return norm(t); })(ctx_.zeros({4}));
  EXPECT_EQ(length.first.item(), 0);
  EXPECT_EQ(length.second.to_vector<float>(), std::vector<float>(4, 0));
  EXPECT_TRUE(std::isnan(norm(ctx_.full({2}, NAN)).item()));
}

TEST_F(Composites, AreOneKernel) {
  auto f = compile([](const Tensor& t) { return norm(t, {1}) + std(t, {1}); });
  const Tensor x = ctx_.from(numbers_, {3, 4}, DType::f64);
  EXPECT_EQ(f(x).to_vector<double>(), (norm(x, {1}) + std(x, {1})).to_vector<double>());
  EXPECT_EQ(f.report()[0].kernels.size(), 1u);
}

TEST_F(Composites, CheckIndicesInTheirOwnName) {
  Context checked({.device = "cpu", .check = true});
  const auto second = [](const Tensor& x, const Tensor& at, const Location& where = Location::current()) {
    return detail::composed("second", {x, at}, where,
                            [](const auto& in) { return take(in[0], in[1], 0) * 2.f; });
  };
  const Tensor x = checked.ones({3}), good = checked.from(std::vector<std::int64_t>{2}, {1}),
               bad = checked.from(std::vector<std::int64_t>{3}, {1});
  auto compiled = compile([&](const Tensor& a, const Tensor& b) { return second(a, b); });
  EXPECT_EQ(second(x, good).item(), 2);
  EXPECT_EQ(compiled(x, good).item(), 2);
  const auto expect_error = [](const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "an index out of range was not found";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_TRUE(text.starts_with("second: ")) << text;
      EXPECT_NE(text.find("composites_test.cpp"), std::string::npos) << text;
    }
  };
  expect_error([&] { second(x, bad); });
  expect_error([&] { compiled(x, bad); });
}

}  // namespace
}  // namespace tilewright
