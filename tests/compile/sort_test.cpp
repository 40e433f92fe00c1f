// Sorting: values and positions beside std::stable_sort, on rows of any length, type and axis; fused with
// others; gradients; sizes that change.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Positions = std::vector<std::int64_t>;

// The positions of one row in order, a NaN as the largest.
Positions sorted_positions(const std::vector<double>& row, Order order) {
  const auto precedes = [](double a, double b) { return std::isnan(a) ? false : std::isnan(b) || a < b; };
  Positions at(row.size());
  std::iota(at.begin(), at.end(), 0);
  std::stable_sort(at.begin(), at.end(), [&](std::int64_t a, std::int64_t b) {
    const double x = row[static_cast<std::size_t>(a)], y = row[static_cast<std::size_t>(b)];
    return order == Order::ascending ? precedes(x, y) : precedes(y, x);
  });
  return at;
}

bool same(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

// Ties, and of floats infinities, NaN and both zeros among them.
std::vector<double> numbers(DType dtype, std::size_t count) {
  std::vector<double> x(count);
  std::uint64_t state = 12345 + count;
  for (double& v : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto draw = static_cast<std::int64_t>(state >> 33);
    v = static_cast<double>(draw % 100);
    if (is_bool(dtype)) v = static_cast<double>(draw % 2);
    if (is_float(dtype)) v = (v - 50) / 8;
    if (dtype == DType::i64 && draw % 3 == 0) v *= 1e12;
    if (dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64) v -= 40;
    if (!is_float(dtype)) continue;
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double special[] = {kInf, -kInf, std::nan(""), -0.0, 0.0};
    if (draw % 7 == 0) v = special[static_cast<std::size_t>(draw / 7 % 5)];
  }
  return x;
}

// Sorts every line of the shape along the axis, and compares.
void expect_sorted(Context& ctx, DType dtype, const Shape& shape, Index axis) {
  SCOPED_TRACE(to_string(shape) + " of " + std::string(name(dtype)) + ", axis " + std::to_string(axis));
  const Tensor x = ctx.from(numbers(dtype, static_cast<std::size_t>(shape.size())), shape, dtype);
  const std::vector<double> stored = x.to_vector<double>();
  const int at = static_cast<int>(axis);
  Index inner = 1;
  for (int i = at + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (const Order order : {Order::ascending, Order::descending}) {
    const Tensor values = sort(x, axis, order), positions = argsort(x, axis, order);
    EXPECT_EQ(values.dtype(), dtype);
    EXPECT_EQ(values.shape(), shape);
    EXPECT_EQ(positions.dtype(), DType::i64);
    EXPECT_EQ(positions.shape(), shape);
    const std::vector<double> v = values.to_vector<double>();
    const Positions p = positions.to_vector<std::int64_t>();
    int wrong = 0;
    for (Index line = 0; line < (shape[at] == 0 ? 0 : shape.size() / shape[at]); ++line) {
      const auto index = [&](std::int64_t i) {
        return static_cast<std::size_t>((line / inner * shape[at] + i) * inner + line % inner);
      };
      std::vector<double> row;
      row.reserve(static_cast<std::size_t>(shape[at]));
      for (Index i = 0; i < shape[at]; ++i) row.push_back(stored[index(i)]);
      const Positions wanted = sorted_positions(row, order);
      for (Index i = 0; i < shape[at]; ++i) {
        const auto k = static_cast<std::size_t>(i);
        wrong +=
            p[index(i)] != wanted[k] || !same(v[index(i)], row[static_cast<std::size_t>(wanted[k])]) ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong, 0) << name(order);
  }
}

constexpr DType kTypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i32, DType::i64, DType::f8e4m3,
                            DType::f8e5m2,  DType::f16, DType::bf16, DType::f32, DType::f64};

class Sorting : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(Sorting, IsStableInEveryType) {
  for (const DType dtype : kTypes) {
    expect_sorted(ctx_, dtype, {3, 200}, 1);
  }
}

TEST_P(Sorting, TakesEveryLengthAndAxis) {
  for (const Index n : {0, 1, 2, 3, 31, 32, 33, 1000, 4097}) {
    expect_sorted(ctx_, DType::f32, {n}, 0);
    if (n < 4) expect_sorted(ctx_, DType::i32, {2, n}, 1);
  }
  for (const Shape& shape : {Shape{5, 7, 9}, Shape{300, 3, 2}, Shape{2, 0, 3}})
    for (Index axis = 0; axis < 3; ++axis) expect_sorted(ctx_, DType::f64, shape, axis);
}

// The k largest of every line, as a sort would have them: rows of which some blocks alone are sorted, and
// rows too short for that.
void expect_largest(Context& ctx, DType dtype, const Shape& shape, Index axis, Index k) {
  SCOPED_TRACE(fmt::format("{} of {}, {} along axis {}", to_string(shape), name(dtype), k, axis));
  const Tensor x = ctx.from(numbers(dtype, static_cast<std::size_t>(shape.size())), shape, dtype);
  const std::vector<double> stored = x.to_vector<double>();
  const auto [values, places] = topk(x, k, axis);
  const std::vector<double> v = values.to_vector<double>();
  const Positions p = places.to_vector<std::int64_t>();
  const Index length = shape[static_cast<int>(axis)];
  Index inner = 1;
  for (int i = static_cast<int>(axis) + 1; i < shape.rank(); ++i) inner *= shape[i];
  int wrong = 0;
  for (Index line = 0; line < shape.size() / length; ++line) {
    const auto index = [&](Index of, Index i) {
      return static_cast<std::size_t>((line / inner * of + i) * inner + line % inner);
    };
    std::vector<double> row;
    row.reserve(static_cast<std::size_t>(length));
    for (Index i = 0; i < length; ++i) row.push_back(stored[index(length, i)]);
    const Positions wanted = sorted_positions(row, Order::descending);
    for (Index i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(wanted[static_cast<std::size_t>(i)]);
      const std::size_t here = index(k, i);
      wrong += p[here] != static_cast<std::int64_t>(at) || !same(v[here], row[at]) ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Sorting, FindsTheLargestOfLongRows) {
  for (const DType dtype : kTypes) expect_largest(ctx_, dtype, {9, 2001}, 1, 5);
  // Blocks that divide the row, that leave an element, or all but one; rows of blocks of blocks.
  for (const Index length : {16384, 16385, 20479, 70001})
    for (const Index k : {1, 3, 50}) expect_largest(ctx_, DType::f32, {length}, 0, k);
  expect_largest(ctx_, DType::f32, {3, 4000, 5}, 1, 4);
  expect_largest(ctx_, DType::i32, {2, 30000}, 1, 9000);  // too many: all is sorted
  expect_largest(ctx_, DType::f32, {1, 30000}, 1, 0);
}

// Where nearly all elements are equal, or below what stands for nothing, places alone decide.
TEST_P(Sorting, FindsTheFirstOfEqualElements) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr Index kLength = 20011;
  for (const double fill : {-kInf, 0.0, std::nan("")})
    for (const Index other : {Index{0}, Index{7777}, kLength - 1}) {
      std::vector<double> x(kLength, fill);
      x[static_cast<std::size_t>(other)] = 1;
      const Positions wanted = sorted_positions(x, Order::descending);
      const Positions found = topk(ctx_.from(x, {kLength}, DType::f32), 6).second.to_vector<std::int64_t>();
      EXPECT_EQ(found, Positions(wanted.begin(), wanted.begin() + 6)) << fill << " " << other;
    }
}

// A program that draws among the most likely tokens: the k largest, until they are as likely as p together.
Tensor nucleus(const Tensor& logits) {
  const auto [largest, places] = topk(logits, 20);
  const Tensor share = softmax(largest), before = cumsum(share, -1) - share;
  return where(before < 0.7f, share, 0.f) + cast(places, DType::f32);
}

TEST_P(Sorting, IsFusedWithWhatIsAroundIt) {
  const auto row = [](const Tensor& x) { return sort(x * 2.f, -1, Order::descending) + 1.f; };
  const auto order = [](const Tensor& x) { return argsort(exp(-x), 0) * 3; };
  const Tensor x = ctx_.randn({6, 50});
  EXPECT_EQ(compile(row)(x).to_vector<float>(), row(x).to_vector<float>());
  EXPECT_EQ(compile(order)(x).to_vector<double>(), order(x).to_vector<double>());
  const std::vector<float> fused = compile(nucleus)(x).to_vector<float>(),
                           apart = nucleus(x).to_vector<float>();
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], apart[i], 1e-5);
}

TEST_P(Sorting, GivesTheLargest) {
  const Tensor x = ctx_.from(std::vector<float>{3, std::nanf(""), 1, 3, -2, 7}, {6});
  const auto [values, places] = topk(x, 4);
  EXPECT_EQ(places.to_vector<std::int64_t>(), (Positions{1, 5, 0, 3}));
  EXPECT_TRUE(std::isnan(values.to_vector<float>()[0]));
  EXPECT_EQ(slice(values, 0, {.start = 1}).to_vector<float>(), (std::vector<float>{7, 3, 3}));
  EXPECT_EQ(topk(x, 0).first.shape(), (Shape{0}));
  const Tensor columns = topk(ctx_.arange(12).reshape({4, 3}), 2, 0).first;
  EXPECT_EQ(columns.to_vector<std::int64_t>(), (Positions{9, 10, 11, 6, 7, 8}));
}

TEST_P(Sorting, PassesGradientsToWhereElementsCameFrom) {
  const Tensor x = ctx_.from(std::vector<float>{3, 1, 2, 5}, {4});
  const Tensor weights = ctx_.from(std::vector<float>{10, 20, 30, 40}, {4});
  const auto sorted = [&](const Tensor& t, const Tensor& w) { return sum(sort(t) * w); };
  EXPECT_EQ(grad(sorted)(x, weights).to_vector<float>(), (std::vector<float>{30, 10, 20, 40}));
  const auto largest = [](const Tensor& t, const Tensor& w) {
    return sum(topk(t, 2).first * slice(w, 0, {.stop = 2}));
  };
  EXPECT_EQ(grad(largest)(x, weights).to_vector<float>(), (std::vector<float>{20, 0, 0, 10}));
  const auto places = [](const Tensor& t) { return sum(cast(argsort(t), DType::f32)) + sum(t); };
  EXPECT_EQ(grad(places)(x).to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
}

TEST_P(Sorting, FollowsSizesThatChange) {
  const auto f = compile([](const Tensor& x) { return sort(x) * 2.f; }, {.dynamic = {{0, 0}}});
  for (const Index n : {5, 90, 33, 700, 8, 0, 1}) {
    const Tensor x = ctx_.randn({n});
    std::vector<float> wanted = x.to_vector<float>();
    std::sort(wanted.begin(), wanted.end());
    for (float& v : wanted) v *= 2;
    EXPECT_EQ(f(x).to_vector<float>(), wanted) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sorting, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// One program sorts a row of up to 2^22 elements; longer ones are sorted in runs, which are merged.
TEST(LongRows, AreSorted) {
  Context ctx({.device = "cpu", .cache_directory = test::kernel_folder()});
  expect_sorted(ctx, DType::f32, {100003}, 0);
  expect_sorted(ctx, DType::f64, {1000000}, 0);
}

TEST(LongRows, AreMergedOfRuns) {
  Context ctx({.device = "cpu", .cache_directory = test::kernel_folder()});
  constexpr Index kLength = 5000000;
  const Tensor x = ctx.randn({kLength});
  std::vector<float> wanted = x.to_vector<float>();
  const auto [values, places] = compile([](const Tensor& t) {
    const Tensor at = argsort(t, 0, Order::descending);
    return std::pair{take_along(t, at, 0), at};
  })(x);
  const std::vector<float> got = values.to_vector<float>(), from = wanted;
  const Positions at = places.to_vector<std::int64_t>();
  std::sort(wanted.begin(), wanted.end(), std::greater<>());
  EXPECT_EQ(got, wanted);
  int wrong = 0;  // of equal ones the first comes first
  for (std::size_t i = 0; i < at.size(); ++i) {
    wrong += from[static_cast<std::size_t>(at[i])] != got[i] ? 1 : 0;
    wrong += i > 0 && got[i - 1] == got[i] && at[i - 1] >= at[i] ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tilewright
