// Operators that assign, logical operators, axes as one number or a list, functions as methods.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;

class Operators : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  Tensor whole(const std::vector<std::int32_t>& v) { return ctx_.from(v, {static_cast<Index>(v.size())}); }
};

TEST_P(Operators, AssignToTheHandleAlone) {
  Tensor x = ctx_.from(std::vector<float>{1, 2, 3}, {3});
  const Tensor before = x;
  x += 1.f;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  x -= before;
  x *= 6;
  x /= 4.0;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1.5, 1.5, 1.5}));
  (x += x) += 1;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{4, 4, 4}));
  Tensor n = whole({12, 7, -9});
  n %= 5;
  EXPECT_EQ(n.to_vector<int>(), (std::vector<int>{2, 2, -4}));
  n <<= 3;
  n >>= 1;
  EXPECT_EQ(n.to_vector<int>(), (std::vector<int>{8, 8, -16}));
  n &= 24;
  n |= whole({1, 2, 4});
  n ^= 3;
  EXPECT_EQ(n.to_vector<int>(), (std::vector<int>{(8 | 1) ^ 3, (8 | 2) ^ 3, ((-16 & 24) | 4) ^ 3}));
}

TEST_P(Operators, AssignInsideCompiledFunctionsAndHaveGradients) {
  const auto f = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 2; ++i) y *= x;
    y += 1.f;
    return sum(y);
  };
  const Tensor x = ctx_.from(std::vector<float>{1, 2}, {2});
  EXPECT_EQ(compile(f)(x).item(), 11);
  EXPECT_EQ(grad(f)(x).to_vector<float>(), (std::vector<float>{3, 12}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_P(Operators, AreLogicalOnAnyType) {
  const Tensor x = ctx_.from(std::vector<float>{0, 2, 0, -3}, {4}), y = whole({0, 0, 5, 5});
  EXPECT_EQ((!x).to_vector<bool>(), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ((x && y).to_vector<bool>(), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ((x || y).to_vector<bool>(), (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ((x > 0.f && !(y == 0)).dtype(), DType::boolean);
  const auto f = compile([](const Tensor& a, const Tensor& b) { return !a || (a && b); });
  EXPECT_EQ(f(x, y).to_vector<bool>(), (std::vector<bool>{true, false, true, true}));
}

TEST_P(Operators, NameTheLineOfTheMistake) {
  Tensor x = ctx_.ones({2, 3}), n = whole({1});
  const Tensor other = ctx_.ones({4}), none;
  expect_says([&] { x += other; }, {"add: ", "operators_test.cpp:"});
  expect_says([&] { x <<= 1; }, {"shl: ", "operators_test.cpp:"});
  expect_says([&] { n %= none; }, {"rem: ", "operators_test.cpp:"});
  expect_says([&] { x&& other; }, {"logical_and: ", "operators_test.cpp:"});
  expect_says([&] { !none; }, {"logical_not: ", "operators_test.cpp:"});
  EXPECT_EQ(x.shape(), (Shape{2, 3}));  // as it was
}

TEST_P(Operators, TakeAxesAsANumberOrAList) {
  const Tensor x = reshape(ctx_.arange(24, DType::f32), {2, 3, 4});
  const std::size_t unsigned_axis = 1;
  const int axis = -1;
  const std::vector<Index> list{0, 2};
  EXPECT_EQ(sum(x).item(), 276);
  EXPECT_EQ(sum(x, {}).item(), 276);
  EXPECT_EQ(sum(x, Axes()).item(), 276);
  EXPECT_EQ(sum(x, 0).shape(), (Shape{3, 4}));
  EXPECT_EQ(sum(x, unsigned_axis).shape(), (Shape{2, 4}));
  EXPECT_EQ(sum(x, axis).shape(), (Shape{2, 3}));
  EXPECT_EQ(sum(x, {axis}).shape(), (Shape{2, 3}));
  EXPECT_EQ(sum(x, list).to_vector<float>(), (std::vector<float>{60, 92, 124}));
  EXPECT_EQ(sum(x, {0, 2}).to_vector<float>(), (std::vector<float>{60, 92, 124}));
  EXPECT_EQ(sum(x, {0}, Keep::yes).shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(max(x, -1, Keep::yes).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(var(x, 0, 1).shape(), (Shape{3, 4}));
  EXPECT_EQ(std(x, {0, 1}).shape(), (Shape{4}));
  EXPECT_EQ(flip(x, 0)[0].to_vector<float>(), x[1].to_vector<float>());
  EXPECT_EQ((flip(x, {0, 1})[{0, 0}].to_vector<float>()), (x[{1, 2}].to_vector<float>()));
  static_assert(!std::is_convertible_v<bool, Axes> && !std::is_convertible_v<double, Axes>);
}

TEST(Methods, CallFunctions) {
  Context ctx({.device = "reference", .cache_directory = ""});
  const Tensor x = reshape(ctx.arange(6, DType::f32), {2, 3}) / 8.f + 0.25f, bits = ctx.arange(1, 3);
  const auto expect_same = [](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(a.to_vector<double>(), b.to_vector<double>());
  };
#define TW_BIT(f, Row) expect_same(bits.f(), f(bits));
#define TW_TEST(f, Row, whole) expect_same(x.f(), f(x));
#define TW_FUNCTION(f) expect_same(x.f(), f(x));
#define TW_FLOAT(f, Row) \
  if (std::string_view(#f) != "acosh") expect_same(x.f(), f(x));  // NaN below 1
#define TW_COMPOSITE_OF(f, parameter, usual, ...) expect_same(x.f(0.5), f(x, 0.5));
#include <tilewright/ops/unary.def>
#define TW_REDUCTION(f) expect_same(x.f(1, Keep::yes), f(x, 1, Keep::yes));
#include <tilewright/tensor/reductions.def>
  expect_same(x.var(0, 1), var(x, 0, 1));
  expect_same(x.std(), std(x));
  expect_same(x.norm({0, 1}), norm(x));
  expect_same(x.argmax(1), argmax(x, 1));
  expect_same(x.argmin(1, Keep::yes), argmin(x, 1, Keep::yes));
#define TW_SCAN(f) expect_same(x.f(1), f(x, 1));
#include <tilewright/tensor/scans.def>
  expect_same(x.sort(0, Order::descending), sort(x, 0, Order::descending));
  expect_same(x.argsort(), argsort(x));
  expect_same(x.topk(2).first, topk(x, 2).first);
  expect_same(x.topk(2, 0).second, topk(x, 2, 0).second);
  expect_same(x.softmax(), softmax(x));
  expect_same(x.log_softmax(0), log_softmax(x, 0));
  expect_same(x.clamp(0.3, 0.5), clamp(x, 0.3, 0.5));
  expect_same(x.pow(2), pow(x, 2));
  expect_same(x.matmul(x.T()), matmul(x, transpose(x, {1, 0})));
  expect_same(x.to(DType::bf16), cast(x, DType::bf16));
  expect_same(x.to("reference"), x);
  expect_same(x.reshape({3, -1}), reshape(x, {3, 2}));
  expect_same(x.flatten(), reshape(x, {6}));
  expect_same(x.transpose({1, 0}), transpose(x, {1, 0}));
  expect_same(x[newaxis].mT(), swap_axes(x[newaxis], 1, 2));
  expect_same(x.swap_axes(0, 1), transpose(x, {1, 0}));
  expect_same(x.unsqueeze(1).squeeze(1), x);
  expect_same(x[0].broadcast_to({2, 3}), broadcast_to(x[0], {2, 3}));
  const auto f = [](const Tensor& t) { return t.exp().sum(0).log().mean(); };
  expect_same(compile(f)(x), f(x));
  expect_says([&] { x.sum(2); }, {"sum: ", "operators_test.cpp:"});
  expect_says([&] { x[newaxis].T(); }, {"T: [1,", "is no matrix: mT() ", "operators_test.cpp:"});
  expect_says([&] { Tensor().exp(); }, {"exp: ", "operators_test.cpp:"});
}

INSTANTIATE_TEST_SUITE_P(Devices, Operators, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
