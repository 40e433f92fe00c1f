// Numbers that took a detour: powers of integers by way of floats, types that depended on the path.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

TEST(IntegerPowers, AreExactAndWrapAround) {
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    Context ctx({.device = device, .cache_directory = test::kernel_folder()});
    const auto whole = [&](const std::vector<Index>& v) {
      return ctx.from(v, {static_cast<Index>(v.size())});
    };
    const Tensor base = whole({3, 7, -2, 0, 1, -1});
    EXPECT_EQ(pow(whole({3}), 20).to_vector<Index>(), (std::vector<Index>{3486784401}));
    EXPECT_EQ(pow(whole({3}), 39).to_vector<Index>(), (std::vector<Index>{4052555153018976267}));
    EXPECT_EQ(pow(whole({3}), 41).to_vector<Index>(),
              (std::vector<Index>{-420491770248316829}));  // modulo 2^64
    EXPECT_EQ(pow(base, whole({20, 1, 63, 0, 1000000, 7})).to_vector<Index>(),
              (std::vector<Index>{3486784401, 7, std::numeric_limits<Index>::min(), 1, 1, -1}));
    const std::vector<Index> inverse = {0, 0, 0, 0, 1, -1};
    EXPECT_EQ(pow(base, -3).to_vector<Index>(), inverse);
    EXPECT_EQ(pow(base, whole({-3, -3, -1, -2, -4, -5})).to_vector<Index>(), inverse);
    EXPECT_EQ(pow(base, -2).to_vector<Index>(), (std::vector<Index>{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(pow(base, 0).to_vector<Index>(), std::vector<Index>(6, 1));
    EXPECT_EQ(pow(2, whole({0, 3, 62})).to_vector<Index>(), (std::vector<Index>{1, 8, Index{1} << 62}));
    const Tensor bytes = cast(whole({3, 2, -3}), DType::i8);
    EXPECT_EQ(pow(bytes, 5).dtype(), DType::i8);
    EXPECT_EQ(cast(pow(bytes, 5), DType::i64).to_vector<Index>(), (std::vector<Index>{-13, 32, 13}));
    const Tensor words = cast(whole({7, -2}), DType::i32);
    EXPECT_EQ(cast(pow(words, words), DType::i64).to_vector<Index>(), (std::vector<Index>{823543, 0}));
    EXPECT_EQ(pow(words, 2.0).dtype(), DType::f32);
    EXPECT_EQ(pow(words, ctx.full({2}, 2.0)).dtype(), DType::f32);
  }
}

TEST(IntegerEinsum, HasMatmulsTypeByEveryPath) {
  Context ctx({.cache_directory = test::kernel_folder()});
  for (const auto& [dtype, want] : {std::pair{DType::i8, DType::i32}, std::pair{DType::u8, DType::i32},
                                    std::pair{DType::i32, DType::i32}, std::pair{DType::i64, DType::i64}}) {
    const Tensor a = ctx.full({2, 3}, 100, dtype), b = ctx.full({3, 2}, 100, dtype);
    EXPECT_EQ(matmul(a, b).dtype(), want);
    for (const char* spec : {"ij,jk->ik", "ij,kl->il", "ij,jk->i", "ij,jk->", "ij,ji->ij"}) {
      const Tensor y = einsum(spec, a, b);
      EXPECT_EQ(y.dtype(), want) << spec << " of " << name(dtype);
    }
    EXPECT_EQ(cast(einsum("ij,kl->", a, b), DType::i64).to_vector<Index>().front(), 360000) << name(dtype);
  }
}

TEST(AttentionOfNoDepth, GivesTheMeanOfTheValues) {
  for (const char* device : {"reference", "cpu"}) {
    Context ctx({.device = device, .cache_directory = test::kernel_folder()});
    const Tensor q = ctx.zeros({1, 1, 2, 0}), k = ctx.zeros({1, 1, 4, 0});
    const Tensor v = ctx.from(std::vector<float>{1, 2, 3, 6}, {1, 1, 4, 1});
    EXPECT_EQ(attention(q, k, v).to_vector<float>(), (std::vector<float>{3, 3})) << device;
  }
}

TEST(Softplus, HasAHalfForItsGradientAtZero) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const auto slopes = value_and_grad([](const Tensor& x) { return sum(softplus(x)); })(ctx.zeros({3}));
  EXPECT_EQ(slopes.second.to_vector<float>(), std::vector<float>(3, 0.5f));
}

// What a function gives eagerly and compiled, as doubles.
void expect_both(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                 const std::vector<double>& want, double relative) {
  for (const Tensor& got : {f(x), compile(f)(x)}) {
    const std::vector<double> numbers = cast(got, DType::f64).to_vector<double>();
    ASSERT_EQ(numbers.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(numbers[i])) << "element " << i << " is " << numbers[i];
      else if (std::isinf(want[i]))
        EXPECT_EQ(numbers[i], want[i]) << "element " << i;
      else
        EXPECT_NEAR(numbers[i], want[i], relative * std::abs(want[i])) << "element " << i;
    }
  }
}

TEST(Elu, HasAGradientThatDoesNotCancel) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const auto slope = [](const Tensor& x) {
    return grad([](const Tensor& t) { return sum(cast(elu(t, 2.0), DType::f64)); })(x);
  };
  const std::vector<double> at{-50, -20, -10, -0.5, 0, 3};
  std::vector<double> want;
  want.reserve(at.size());
  for (double v : at) want.push_back(v > 0 ? 1 : 2 * std::exp(v));
  // Half a bit of the stored number, and two bits of exp in the type that is computed in.
  for (const auto& [dtype, bound] :
       {std::pair{DType::f64, 0x1p-50}, std::pair{DType::f32, 0x1p-22}, std::pair{DType::bf16, 0x1p-8}})
    expect_both(slope, ctx.from(at, {6}, dtype), want, bound);
}

TEST(LiteralsAlone, KeepIntegersThatAreNotI32) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Tensor mask = ctx.from(std::vector<int>{1, 0}, {2}, DType::boolean);
  const Index large = Index{1} << 40;
  EXPECT_EQ(where(mask, large, 2).to_vector<Index>(), (std::vector<Index>{large, 2}));
  EXPECT_EQ(where(mask, 2, -large).to_vector<Index>(), (std::vector<Index>{2, -large}));
  EXPECT_EQ(where(mask, Index{1} << 31, 2).dtype(), DType::i64);
  EXPECT_EQ(where(mask, -(Index{1} << 31), 2).dtype(), DType::i32);
}

TEST(Split, RefusesPartsThatOverflowTogether) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Tensor x = ctx.arange(5);
  constexpr Index kMost = std::numeric_limits<Index>::max();
  test::expect_says([&] { split(x, 0, {kMost, kMost, 7}); },
                    {"split: the parts hold more", "numbers_test.cpp:"});
  test::expect_says([&] { split(x, 0, {6, -1}); }, {"split:"});
  test::expect_says([&] { split(x, 0, {2, -1, 4}); }, {"split: an extent is negative"});
  test::expect_says([&] { split(x, 0, {2, 2}); }, {"split: the parts hold 4"});
  EXPECT_EQ(split(x, 0, {2, 0, 3}).at(2).to_vector<Index>(), (std::vector<Index>{2, 3, 4}));
}

TEST(Variance, OfNoDegreesOfFreedomIsADivisionByZero) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (Index ddof : {Index{2}, Index{5}, std::numeric_limits<Index>::max()})
    for (DType dtype : {DType::f32, DType::f64})
      expect_both([&](const Tensor& x) { return var(x, {1}, ddof); },
                  ctx.from(std::vector<double>{1, 2, 3, 3, -1, 1}, {3, 2}, dtype), {inf, nan, inf}, 0);
}

TEST(Clamp, LeavesIntegersOfTheirTypeBetweenBoundsThatItHolds) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Index big = (Index{1} << 60) + 1;
  const Tensor x = ctx.from<Index>({big, -big, 7}, {3});
  for (double low : {-0x1p63, -0x1p62}) {
    const auto cut = [=](const Tensor& t) { return clamp(t, low, 0x1p63 - 1024); };
    for (const Tensor& y : {cut(x), compile(cut)(x)}) {
      EXPECT_EQ(y.dtype(), DType::i64) << low;
      EXPECT_EQ(y.to_vector<Index>(), (std::vector<Index>{big, -big, 7})) << low;
    }
  }
  EXPECT_EQ(clamp(x, 0, 0x1p63).dtype(), DType::f32);
  EXPECT_EQ(clamp(x, std::nextafter(-0x1p63, -INFINITY), 0).dtype(), DType::f32);
}

TEST(Variance, OfI64IsFiniteWhereItFitsF32) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Index far = Index{1} << 62;
  std::vector<Index> values(200, far);
  std::fill(values.begin(), values.begin() + 100, -far);
  expect_both([](const Tensor& x) { return var(x); }, ctx.from(values, {200}), {0x1p124}, 0);
  EXPECT_EQ(var(ctx.from(values, {200})).dtype(), DType::f32);
}

// A product that is needed by itself as well is rounded before more is made of it, in every copy of the sum:
// its maximum is one of them. Two columns are one tile, 70,000 are walked in a loop for the maximum and in
// one more.
TEST(Maximum, OfASumOfProductsIsOneOfThem) {
  Context ctx({.device = "cpu", .cache_directory = test::kernel_folder()});
  for (DType dtype : {DType::f32, DType::f64})
    for (Index columns : {Index{3}, Index{70000}}) {
      const Tensor a = ctx.randn({64, columns}, dtype), b = ctx.randn({64, columns}, dtype),
                   r = ctx.randn({1, columns}, dtype);
      const auto hits = compile([](const std::vector<Tensor>& in) {
        const Tensor s = in[0] * in[1], v = s - in[2], m = max(v, {1}, Keep::yes);
        return std::vector<Tensor>{sum(cast(v == m, DType::i32)), s,
                                   sum(cast(max(v - m, {1}) == 0, DType::i32))};
      });
      const std::vector<Tensor> got = hits({a, b, r});
      EXPECT_EQ(got.at(0).item(), 64) << name(dtype) << " " << columns;
      EXPECT_EQ(got.at(2).item(), 64) << name(dtype) << " " << columns;
    }
}

TEST(Pow, HasAGradientWithTheSignOfAnOddPower) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> at{-inf, -1e4, 1e4, -1};
  for (DType dtype : {DType::f32, DType::bf16})
    expect_both([](const Tensor& x) { return grad([](const Tensor& t) { return sum(pow(t, 1e10)); })(x); },
                ctx.from(at, {4}, dtype), {-inf, -inf, inf, -1e10}, 0x1p-7);
}

}  // namespace
}  // namespace tilewright
