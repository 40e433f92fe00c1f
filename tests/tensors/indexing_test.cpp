// x[...]: NumPy's meaning, by a plain walk over the elements and by what functions give; gradients; errors.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <functional>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;

class Indexing : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  const Tensor x_ = reshape(ctx_.arange(60), {3, 4, 5});  // element (i, j, k) is 20 i + 5 j + k
  const Tensor at_ = ctx_.from(std::vector<std::int64_t>{2, 0, 1, 1}, {2, 2});

  static void expect(const Tensor& got, const Shape& shape, const std::vector<Index>& values) {
    EXPECT_EQ(got.shape(), shape);
    EXPECT_EQ(got.to_vector<Index>(), values);
  }
  // Eager and compiled.
  template <class F>
  void expect_both(const F& f, const Shape& shape, const std::vector<Index>& values) {
    expect(f(x_), shape, values);
    expect(compile(f)(x_), shape, values);
  }
};

// np.arange(60).reshape(3, 4, 5)[...]
TEST_P(Indexing, HasNumPysMeaning) {
  expect_both([](const Tensor& x) { return x[{1, 2}]; }, {5}, {30, 31, 32, 33, 34});
  expect_both([](const Tensor& x) { return x[{1, 2, 3}]; }, {}, {33});
  expect_both([](const Tensor& x) { return x[-1][-2]; }, {5}, {50, 51, 52, 53, 54});
  expect_both([](const Tensor& x) { return x[{ellipsis, 0}]; }, {3, 4},
              {0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55});
  expect_both([](const Tensor& x) { return x[{0, slice(1, 3), slice(std::nullopt, std::nullopt, -2)}]; },
              {2, 3}, {9, 7, 5, 14, 12, 10});
  expect_both([](const Tensor& x) { return x[{slice(1), newaxis, ellipsis, newaxis, slice(-2, 9)}]; },
              {1, 1, 4, 1, 2}, {3, 4, 8, 9, 13, 14, 18, 19});
  expect_both([](const Tensor& x) { return x[{ellipsis, 1, 2, 3}]; }, {}, {33});
  expect_both([](const Tensor& x) { return x[slice(5, 7)]; }, {0, 4, 5}, {});
  EXPECT_EQ(x_[0].shape(), (Shape{4, 5}));
  EXPECT_EQ(x_[slice(1, 3)].shape(), (Shape{2, 4, 5}));
  EXPECT_EQ(x_[newaxis].shape(), (Shape{1, 3, 4, 5}));
  EXPECT_EQ(x_[ellipsis].shape(), (Shape{3, 4, 5}));
  EXPECT_EQ(x_[{}].shape(), (Shape{3, 4, 5}));
  EXPECT_EQ((x_[{slice(), slice(2)}].shape()), (Shape{3, 2, 5}));
}

TEST_P(Indexing, PicksByATensorAlongItsAxis) {
  EXPECT_EQ(x_[at_].shape(), (Shape{2, 2, 4, 5}));
  EXPECT_EQ(x_[at_].to_vector<Index>(), take(x_, at_, 0).to_vector<Index>());
  expect(x_[{slice(1), at_, 0}], {1, 2, 2}, {10, 0, 5, 5});
  expect(x_[{ellipsis, at_[0]}][{0, slice(2)}], {2, 2}, {2, 0, 7, 5});
  expect(x_[{1, at_[1], newaxis, slice(2)}], {2, 1, 2}, {25, 26, 25, 26});
  const auto compiled = compile([](const Tensor& x, const Tensor& at) { return x[{1, at}]; });
  EXPECT_EQ(compiled(x_, at_).to_vector<Index>(), (x_[{1, at_}].to_vector<Index>()));
}

TEST_P(Indexing, HasAGradient) {
  const auto f = value_and_grad([](const Tensor& x) { return sum(x[{1, slice(0, 4, 2)}] * 3.f); });
  std::vector<float> want(12, 0);
  want[4] = want[6] = 3;
  EXPECT_EQ(f({ctx_.ones({3, 4})})[1].to_vector<float>(), want);
}

TEST_P(Indexing, SaysWhatIsWrong) {
  const auto expect_error = [](const std::function<void()>& mistake, const std::string& text) {
    expect_says(mistake, {"x[...]: " + text, " (at indexing_test.cpp:"});
    const std::string message = test::message_of(mistake);
    EXPECT_EQ(message.find("x[...]"), message.rfind("x[...]")) << message;
    EXPECT_EQ(message.find(" (at "), message.rfind(" (at ")) << message;
  };
  const Tensor none, real = ctx_.ones({2}), far = ctx_.from(std::vector<std::int64_t>{5}, {1});
  expect_error([&] { x_[{0, 7}]; }, "index 7 is out of range of axis 1 of i64[3,4,5]");
  expect_error([&] { x_[-4]; }, "index -4 is out of range of axis 0 of i64[3,4,5]");
  expect_error([&] { x_[{ellipsis, 5}]; }, "index 5 is out of range of axis 2 of i64[3,4,5]");
  expect_error([&] { x_[{0, 0, slice(), newaxis, 0}]; },
               "4 indices are too many for the 3 axes of i64[3,4,5]");
  expect_error([&] { x_[{ellipsis, 0, ellipsis}]; }, "more than one ellipsis");
  expect_error([&] { x_[{at_, at_}]; }, "more than one index tensor");
  expect_error([&] { x_[{0, slice(), at_}]; }, "an index tensor and a position with others between");
  expect_error([&] { x_[slice(0, 3, 0)]; }, "the step is 0");
  expect_error([&] { x_[x_ > 3]; }, "an index of bools");
  expect_error([&] { x_[real]; }, "");
  expect_error([&] { x_[none]; }, "");
  expect_error([&] { none[0]; }, "this tensor was never given a value");
  expect_error([&] { compile([](const Tensor& x) { return x[{0, 7}]; })(x_); }, "index 7 is out of range");
  Context checked({.device = GetParam(), .cache_directory = "", .check = true});
  const Tensor y = checked.ones({3, 2}), bad = checked.from(std::vector<std::int64_t>{5}, {1});
  expect_error([&] { y[bad]; }, "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Indexing, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// x[0] = y would set a handle that nobody has.
template <class T>
concept TakesAssignment = requires(T x, Tensor y) { x[0] = y; };
static_assert(!TakesAssignment<Tensor>);

}  // namespace
}  // namespace tilewright
