// arange with a start and a step, linspace, eye; triangles; flatten, moveaxis, roll, repeat. Expected numbers
// by plain loops or written down from NumPy.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;

TEST(From, TakesVectorsArraysAndLists) {
  Context ctx({.cache_directory = ""});
  const std::vector<float> numbers = {1, 2, 3};
  const auto expect = [&](const Tensor& x, DType dtype) {
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(x.to_vector<float>(), numbers);
  };
  expect(ctx.from(numbers, {3}), DType::f32);
  expect(ctx.from({1.f, 2.f, 3.f}, {3}), DType::f32);
  expect(ctx.from({1, 2, 3}, {3}), DType::i32);
  expect(ctx.from<double>({1, 2, 3}, {3}), DType::f64);
  expect(ctx.from({1, 2, 3}, {3}, DType::bf16), DType::bf16);
  expect(ctx.from(std::array<double, 3>{1, 2, 3}, {3}), DType::f64);
  float array[] = {1, 2, 3};
  expect(ctx.from(array, {3}), DType::f32);
  for (const Tensor& x :
       {ctx.from(std::vector<bool>{true, false, true}, {3}), ctx.from({true, false, true}, {3})}) {
    EXPECT_EQ(x.dtype(), DType::boolean);
    EXPECT_EQ(x.to_vector<bool>(), (std::vector<bool>{true, false, true}));
  }
  expect_says([&] { ctx.from({1.f, 2.f}, {3}); }, {"from", "ranges_test.cpp:"});
}

class Ranges : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  // What `make` gives outside and inside a compiled function.
  template <class Make>
  std::vector<double> both(const Make& make) {
    const Tensor alone = make();
    const Tensor compiled =
        compile([&](const Tensor& x) { return make() + cast(x, alone.dtype()); })(ctx_.zeros({}, DType::f32));
    EXPECT_EQ(alone.to_vector<double>(), compiled.to_vector<double>());
    return alone.to_vector<double>();
  }
};

TEST_P(Ranges, GoFromStartUpToStop) {
  const Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(both([&] { return ctx_.arange(2, 11, 3); }), (std::vector<double>{2, 5, 8}));
  EXPECT_EQ(both([&] { return ctx_.arange(2, 12, 3); }), (std::vector<double>{2, 5, 8, 11}));
  EXPECT_EQ(both([&] { return ctx_.arange(5, 2, -1); }), (std::vector<double>{5, 4, 3}));
  EXPECT_EQ(both([&] { return ctx_.arange(3, 6); }), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(ctx_.arange(3, 6).dtype(), DType::i64);
  EXPECT_EQ(ctx_.arange(3, 3).shape(), (Shape{0}));
  EXPECT_EQ(ctx_.arange(3, 1).shape(), (Shape{0}));
  EXPECT_EQ(ctx_.arange(-2, 2, 2, DType::i8).to_vector<int>(), (std::vector<int>{-2, 0}));
  EXPECT_EQ(ctx_.arange(most - 2, most, 2).to_vector<Index>(), (std::vector<Index>{most - 2}));
  EXPECT_EQ(ctx_.arange(-most, most, most).to_vector<Index>(), (std::vector<Index>{-most, 0}));
  // np.arange(0, 1, 0.1) and np.arange(1., -1., -.75)
  std::vector<double> tenths;
  tenths.reserve(10);
  for (int i = 0; i < 10; ++i) tenths.push_back(static_cast<float>(i * 0.1));
  EXPECT_EQ(both([&] { return ctx_.arange(0, 1, 0.1); }), tenths);
  EXPECT_EQ(both([&] { return ctx_.arange(1.0, -1.0, -0.75, DType::f64); }),
            (std::vector<double>{1, 0.25, -0.5}));
  EXPECT_EQ(ctx_.arange(0.0, 1.0, 0.1).dtype(), DType::f32);
  EXPECT_EQ(both([&] { return ctx_.arange(2.5); }), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(ctx_.arange(2.5F, DType::f64).dtype(), DType::f64);
}

TEST_P(Ranges, OfLinspaceEndAtStop) {
  for (const Index n : {2, 3, 7, 50, 51}) {
    std::vector<double> want;
    want.reserve(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i)
      want.push_back(i == n - 1 ? 1.7
                                : -0.3 + static_cast<double>(i) * ((1.7 + 0.3) / static_cast<double>(n - 1)));
    const std::vector<double> got = both([&] { return ctx_.linspace(-0.3, 1.7, n, DType::f64); });
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 3e-16) << i;
    EXPECT_EQ(got.back(), 1.7);
    EXPECT_EQ(got.front(), -0.3);
  }
  EXPECT_EQ(both([&] { return ctx_.linspace(0, 1, 5); }), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(both([&] { return ctx_.linspace(3, 1, 1); }), (std::vector<double>{3}));
  EXPECT_EQ(ctx_.linspace(3, 1, 0).shape(), (Shape{0}));
  EXPECT_EQ(ctx_.linspace(0, 1, 3, DType::bf16).dtype(), DType::bf16);
}

TEST_P(Ranges, OfOnesOnTheDiagonal) {
  EXPECT_EQ(both([&] { return ctx_.eye(2); }), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(both([&] { return ctx_.eye(2, 3, DType::i32); }), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(ctx_.eye(3, 0).shape(), (Shape{3, 0}));
}

TEST_P(Ranges, ShareKernelsWhateverTheNumbers) {
  (void)ctx_.linspace(0, 1, 100);
  const std::vector<float> got = ctx_.linspace(5, 105, 101).to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 5 + static_cast<float>(i));
}

TEST_P(Ranges, SayWhatIsWrong) {
  const std::string here = "ranges_test.cpp:";
  const Index most = std::numeric_limits<Index>::max();
  expect_says([&] { ctx_.arange(0, 5, 0); }, {"arange: the step is 0", here});
  expect_says([&] { ctx_.arange(0., 5., 0.); }, {"arange: the step is 0", here});
  expect_says([&] { ctx_.arange(0, 300, 1, DType::u8); }, {"arange: u8 does not hold 299", here});
  expect_says([&] { ctx_.arange(-1, 3, 1, DType::u8); }, {"arange: u8 does not hold -1", here});
  expect_says([&] { ctx_.arange(0., 3., 0.5, DType::i32); }, {"arange: i32 does not hold 0.5", here});
  expect_says([&] { ctx_.arange(3, ~0ull); }, {"arange: a number is beyond", here});
  expect_says([&] { ctx_.arange(0., 300., 1., DType::i8); }, {"arange: i8 does not hold 299", here});
  expect_says([&] { ctx_.arange(-most, most); }, {"arange: ", "too many", here});
  expect_says([&] { ctx_.arange(0., NAN); }, {"arange: ", here});
  expect_says([&] { ctx_.linspace(0, 1, -1); }, {"linspace: ", here});
  expect_says([&] { ctx_.linspace(0, 1, 3, DType::i32); }, {"linspace: i32 is not a float type", here});
  expect_says([&] { ctx_.eye(-1); }, {"eye: ", here});
}

TEST_P(Ranges, OfTrianglesAreKept) {
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 4, 3}})
    for (const Index diagonal : {-5, -1, 0, 2, 9}) {
      const Tensor x = reshape(ctx_.arange(1, shape.size() + 1), shape);
      const Index rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
      std::vector<Index> lower, upper;
      for (Index i = 0; i < shape.size(); ++i) {
        const Index row = i / columns % rows, column = i % columns;
        lower.push_back(column - row <= diagonal ? i + 1 : 0);
        upper.push_back(column - row >= diagonal ? i + 1 : 0);
      }
      EXPECT_EQ(tril(x, diagonal).to_vector<Index>(), lower);
      EXPECT_EQ(compile([=](const Tensor& t) { return triu(t, diagonal); })(x).to_vector<Index>(), upper);
    }
  EXPECT_EQ(tril(ctx_.full({2, 2}, NAN)).to_vector<float>()[1], 0);
  EXPECT_EQ(triu(ctx_.ones({2, 2}, DType::boolean)).dtype(), DType::boolean);
  EXPECT_EQ(grad([](const Tensor& x) { return sum(tril(x)); })(ctx_.ones({2, 2})).to_vector<float>(),
            (std::vector<float>{1, 0, 1, 1}));
}

// np.roll, np.repeat, np.moveaxis
TEST_P(Ranges, AreRearranged) {
  const Tensor x = reshape(ctx_.arange(6), {2, 3});
  EXPECT_EQ(roll(x, 1, 1).to_vector<Index>(), (std::vector<Index>{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(roll(x, -4, -1).to_vector<Index>(), (std::vector<Index>{1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(roll(x, 1, 0).to_vector<Index>(), (std::vector<Index>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(roll(x, 6, 1).to_vector<Index>(), x.to_vector<Index>());
  constexpr Index kLeast = std::numeric_limits<Index>::min();  // by 3: 1 behind a whole number of rounds
  EXPECT_EQ(roll(x, kLeast, 1).to_vector<Index>(), roll(x, 1, 1).to_vector<Index>());
  EXPECT_EQ(max(tril(x, kLeast)).item(), 0);
  EXPECT_EQ(triu(x, kLeast).to_vector<Index>(), x.to_vector<Index>());
  EXPECT_EQ(repeat(x, 2, 1).to_vector<Index>(), (std::vector<Index>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(repeat(x, 2, 0).to_vector<Index>(), (std::vector<Index>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(repeat(x, 0, 0).shape(), (Shape{0, 3}));
  const Tensor y = ctx_.zeros({2, 3, 4, 5});
  EXPECT_EQ(moveaxis(y, 0, -1).shape(), (Shape{3, 4, 5, 2}));
  EXPECT_EQ(moveaxis(y, 3, 1).shape(), (Shape{2, 5, 3, 4}));
  EXPECT_EQ(flatten(y, 1, 2).shape(), (Shape{2, 12, 5}));
  EXPECT_EQ(flatten(y).shape(), (Shape{120}));
  EXPECT_EQ(flatten(ctx_.zeros({})).shape(), (Shape{1}));
  EXPECT_EQ(ravel(x).to_vector<Index>(), x.to_vector<Index>());
  EXPECT_EQ(concat({x, x}).shape(), (Shape{4, 3}));
  EXPECT_EQ(stack({x, x}).shape(), (Shape{2, 2, 3}));
  const auto f = [](const Tensor& t) { return sum(roll(repeat(t, 2, 0), 1, 0) * 3.f); };
  EXPECT_EQ(grad(f)(ctx_.ones({2})).to_vector<float>(), (std::vector<float>{6, 6}));
}

// NumPy's: np.tile(np.arange(6).reshape(2, 3), (2, 1, 2)), np.meshgrid(np.arange(2), [5, 6, 7],
// indexing="ij").
TEST_P(Ranges, AreLaidOutSideBySide) {
  const Tensor x = reshape(ctx_.arange(6), {2, 3});
  EXPECT_EQ(repmat(x, {2}).to_vector<Index>(), (std::vector<Index>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(repmat(x, {2, 1}).to_vector<Index>(), (std::vector<Index>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  const Tensor y = repmat(x, {2, 1, 2});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 6}));
  EXPECT_EQ(y[1].to_vector<Index>(), repmat(x, {2}).to_vector<Index>());
  EXPECT_EQ(repmat(x, {}).to_vector<Index>(), x.to_vector<Index>());
  EXPECT_EQ(repmat(x, {0, 1}).shape(), (Shape{0, 3}));
  EXPECT_EQ(repmat(ctx_.scalar(7), {2, 2}).to_vector<Index>(), (std::vector<Index>{7, 7, 7, 7}));
  const auto f = [](const Tensor& t) { return sum(repmat(t, {3, 2}) * 2.f); };
  EXPECT_EQ(grad(f)(ctx_.ones({2})).to_vector<float>(), (std::vector<float>{12, 12}));

  const std::vector<Tensor> grid = meshgrid({ctx_.arange(2), ctx_.arange(5, 8, 1) * 1.f});
  ASSERT_EQ(grid.size(), 2u);
  EXPECT_EQ(grid[0].to_vector<Index>(), (std::vector<Index>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(grid[1].to_vector<float>(), (std::vector<float>{5, 6, 7, 5, 6, 7}));
  EXPECT_EQ(grid[1].shape(), (Shape{2, 3}));
  EXPECT_EQ(meshgrid({ctx_.ones({2}), ctx_.ones({3}), ctx_.ones({4})})[2].shape(), (Shape{2, 3, 4}));
}

// Sums and products of integers are i64, extremes of x's type.
TEST_P(Ranges, AreScanned) {
  const Tensor x = ctx_.from(std::vector<float>{2, -1, 3, 0, 3, 1}, {6});
  EXPECT_EQ(cumprod(x, 0).to_vector<float>(), (std::vector<float>{2, -2, -6, 0, 0, 0}));
  EXPECT_EQ(cummax(x, 0).to_vector<float>(), (std::vector<float>{2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(cummin(x, -1).to_vector<float>(), (std::vector<float>{2, -1, -1, -1, -1, -1}));
  const Tensor narrow = cast(x, DType::i8);
  EXPECT_EQ(cumprod(narrow, 0).dtype(), DType::i64);
  EXPECT_EQ(cummax(narrow, 0).dtype(), DType::i8);
  EXPECT_EQ(cummin(narrow, 0).to_vector<Index>(), (std::vector<Index>{2, -1, -1, -1, -1, -1}));
  EXPECT_EQ(cummax(x < 0.f, 0).to_vector<bool>(), (std::vector<bool>{false, true, true, true, true, true}));
  const auto f = [](const Tensor& t) { return sum(cumprod(t, 0)); };
  // ∂/∂x3, where the zero stands: 2 · -1 · 3 · (1 + 3 + 3 · 1).
  EXPECT_EQ(grad(f)(x).to_vector<float>(), (std::vector<float>{-3, 8, -2, -42, 0, 0}));
}

TEST_P(Ranges, AreChosenBetweenTwoNumbers) {
  const Tensor positive = ctx_.from(std::vector<float>{-1, 2}, {2}) > 0.f;
  EXPECT_EQ(where(positive, 1, 0).dtype(), DType::i32);
  EXPECT_EQ(where(positive, 0.5, -1).to_vector<float>(), (std::vector<float>{-1, 0.5}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Ranges, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
