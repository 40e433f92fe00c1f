// Scans along axes of any length, views of many axes, and numbers drawn below large bounds.
#include "ops/functions.h"
#include "passes/pipeline.h"
#include "support/h200_target.h"

#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace tilewright {
namespace {

// Small integers, whose sums f32 holds exactly.
TEST(LongScans, OfAnyLengthAreRight) {
  Context ctx;
  for (const Shape& shape : {Shape{1100000}, Shape{70000, 64}, Shape{1050000, 3}, Shape{32769}, Shape{99991},
                             Shape{40960, 2}, Shape{40961, 2}}) {
    SCOPED_TRACE(to_string(shape));
    const Index rows = shape[0], columns = shape.size() / rows;
    std::vector<float> x(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7 + i / 5) % 5) - 2;
    std::vector<float> sums = x, highest = x;
    for (std::size_t i = static_cast<std::size_t>(columns); i < x.size(); ++i) {
      sums[i] += sums[i - static_cast<std::size_t>(columns)];
      highest[i] = std::max(highest[i], highest[i - static_cast<std::size_t>(columns)]);
    }
    const Tensor t = ctx.from(x, shape);
    EXPECT_EQ(cumsum(t, 0).to_vector<float>(), sums);
    // Its gradient scans from the other end: how many sums an element is part of.
    const std::vector<float> parts =
        grad([](const Tensor& u) { return sum(cumsum(u, 0)); })(t).to_vector<float>();
    for (const Index row : {Index{0}, Index{4096}, rows / 2, rows - 1})
      EXPECT_EQ(parts[static_cast<std::size_t>(row * columns)], static_cast<float>(rows - row)) << row;
  }
}

// A NaN is in every sum and every extreme from its place on, in whichever block that is.
TEST(LongScans, PassNaNOnFromBlockToBlock) {
  Context ctx;
  constexpr Index kLength = 50021;
  for (const Index place : {Index{0}, Index{15}, Index{4095}, Index{4096}, Index{30000}, kLength - 1}) {
    std::vector<float> x(kLength, -1.f);
    x[static_cast<std::size_t>(place)] = std::nanf("");
    const Tensor t = ctx.from(x, {kLength});
    for (const Tensor& scanned : {cumsum(t, 0), cummax(t, 0), cummin(t, 0), cumprod(t, 0)}) {
      const std::vector<float> y = scanned.to_vector<float>();
      const auto is_nan = [](float v) { return std::isnan(v); };
      EXPECT_EQ(std::count_if(y.begin(), y.end(), is_nan), kLength - place);
      EXPECT_EQ(std::find_if(y.begin(), y.end(), is_nan) - y.begin(), place);
    }
  }
}

// Whatever the order, a product of i + 1 factors is i multiplications, each off by 2^-24 of itself at most:
// what a plain loop's bound says holds of trees and blocks as well.
TEST(LongScans, ProductsOfAMillionFactorsNearOneAreWithinALoopsBound) {
  Context ctx;
  constexpr Index kLength = 1'000'000;
  for (const double spread : {1e-6, 1e-4, 1e-3}) {
    SCOPED_TRACE(spread);
    std::mt19937_64 random(1);
    std::vector<float> x(kLength);
    for (float& v : x)
      v = static_cast<float>(1 + spread * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5));
    const std::vector<float> products = cumprod(ctx.from(x, {kLength}), 0).to_vector<float>();
    double exact = 1;  // in float64, whose own roundings come to 1e6 · 2^-53
    for (Index i = 0; i < kLength; ++i) {
      const auto at = static_cast<std::size_t>(i);
      exact *= static_cast<double>(x[at]);
      const double bound = std::expm1(static_cast<double>(i) * (0x1p-24 + 0x1p-53));
      ASSERT_NEAR(products[at], exact, bound * std::fabs(exact)) << "element " << i;
    }
  }
}

// The bits of a running sum are those of its length, however many threads share it.
TEST(LongScans, AreTheSameOnAnyNumberOfThreads) {
  std::vector<std::vector<float>> sums;
  for (const int threads : {1, 2, 3, 7}) {
    Context ctx({.threads = threads, .seed = 5});
    sums.push_back(cumsum(ctx.randn({300007}), 0).to_vector<float>());
  }
  for (const std::vector<float>& other : sums) EXPECT_EQ(other, sums.front());
}

// Rows of a size that is an argument are walked block by block, with what came before.
TEST(LongScans, OfAnySizeCarryWhatCameBefore) {
  Context ctx;
  const auto scans = compile(
      [](const Tensor& x) {
        return std::vector<Tensor>{cumsum(x, 1), cummax(x, 1), cumprod(x, 1), cumsum(cumsum(x, 1), 1),
                                   cumsum(x.to(DType::i32), 1)};
      },
      {.dynamic = {{.argument = 0, .axis = 1}}});
  const auto columns =
      compile([](const Tensor& x) { return cumsum(x, 0); }, {.dynamic = {{.argument = 0, .axis = 0}}});
  for (const Index length : {700, 701, 767, 768, 769, 1000, 1025}) {
    std::vector<float> x(static_cast<std::size_t>(3 * length));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * i % 7 < 3 ? -1.f : 1.f;
    const Tensor t = ctx.from(x, {3, length});
    const std::vector<Tensor> found = scans(t);
    const std::vector<float> extremes = found[1].to_vector<float>(), products = found[2].to_vector<float>(),
                             sums_of_sums = found[3].to_vector<float>();
    for (Index row = 0; row < 3; ++row) {
      float sum = 0, most = -2, product = 1, twice = 0;
      for (Index i = 0; i < length; ++i) {
        const auto at = static_cast<std::size_t>(row * length + i);
        sum += x[at], most = std::max(most, x[at]), product *= x[at], twice += sum;
        x[at] = sum;
        ASSERT_EQ(extremes[at], most) << length << ", " << i;
        ASSERT_EQ(products[at], product) << length << ", " << i;
        ASSERT_EQ(sums_of_sums[at], twice) << length << ", " << i;
      }
    }
    EXPECT_EQ(found[0].to_vector<float>(), x) << length;
    EXPECT_EQ(found[4].to(DType::f32).to_vector<float>(), x) << length;
    EXPECT_EQ(columns(t.T()).T().to_vector<float>(), x) << length;
  }
  EXPECT_LE(scans.report().size(), 2U) << scans.explain();
  EXPECT_LE(columns.report().size(), 2U) << columns.explain();
}

// Kernels for rows of any length keep none of them whole: their scans are cut all the same.
TEST(LongScans, AreCutWhereNoRowIsKept) {
  tile::Target target = test::h200_target();
  target.row_bytes = 0;
  for (const Shape& shape : {Shape{3000000}, Shape{5000, 7}, Shape{100}}) {
    ir::Graph graph("scan");
    graph.set_outputs({ops::cumsum({&graph, graph.add_input("x", {DType::f32, shape})}, 0).id});
    EXPECT_FALSE(passes::run_pipeline(graph, target).plan.kernels.empty()) << to_string(shape);
  }
}

TEST(ManyAxes, AreTransposed) {
  Context ctx;
  constexpr int kAxes = 11;
  std::vector<Index> perm(kAxes);
  std::iota(perm.rbegin(), perm.rend(), 0);
  const Shape shape(std::vector<Index>(kAxes, 2));
  std::vector<float> x(static_cast<std::size_t>(shape.size()));
  std::iota(x.begin(), x.end(), 0.f);
  const std::vector<float> y =
      compile([&](const Tensor& t) { return transpose(t, perm) * 2.f; })(ctx.from(x, shape))
          .to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t reversed = 0;
    for (int bit = 0; bit < kAxes; ++bit) reversed |= (i >> bit & 1) << (kAxes - 1 - bit);
    ASSERT_EQ(y[i], 2 * x[reversed]) << i;
  }
}

// Each third of the range has a third of the draws, within five deviations.
TEST(RandomIntegers, AreSpreadEvenly) {
  Context ctx;
  constexpr Index kDraws = 200000;
  for (const Index high : {Index{3}, Index{4097}, Index{1000000000}, Index{3000000000}, Index{1} << 32}) {
    const std::vector<std::int64_t> drawn = ctx.randint({kDraws}, high, DType::i64).to_vector<std::int64_t>();
    for (const Index part : {0, 1, 2}) {
      const Index low = (high * part + 2) / 3, end = (high * (part + 1) + 2) / 3;
      const auto inside =
          std::count_if(drawn.begin(), drawn.end(), [&](std::int64_t v) { return v >= low && v < end; });
      const double share = static_cast<double>(end - low) / static_cast<double>(high);
      EXPECT_NEAR(static_cast<double>(inside) / kDraws, share, 5 * std::sqrt(share * (1 - share) / kDraws))
          << high << ", part " << part;
    }
  }
}

}  // namespace
}  // namespace tilewright
