// Exponentials shifted by functions of their row's extremes, as users write softmax by hand: what shares one
// loop with the extremes must not depend on what these are before anything was seen, nor on what has
// vanished.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

// Coefficients of the exponent: of the row's own values, their maximum, their minimum, and their maximum
// above zero.
struct Exponent {
  double own, max, min, above_zero;
};

Tensor exponentials(const Tensor& s, const Exponent& e) {
  const Tensor most = max(s, -1, Keep::yes), least = min(s, -1, Keep::yes);
  Tensor x = s * e.own;
  if (e.max != 0) x = x + most * e.max;
  if (e.min != 0) x = x + least * e.min;
  if (e.above_zero != 0) x = x + maximum(most, 0.0) * e.above_zero;
  return exp(x);
}

using Use = std::function<Tensor(const Tensor& e, const Tensor& v)>;
const std::vector<std::pair<std::string, Use>>& uses() {
  static const std::vector<std::pair<std::string, Use>> all = {
      {"product", [](const Tensor& e, const Tensor& v) { return matmul(e, v); }},
      {"average", [](const Tensor& e, const Tensor& v) { return matmul(e, v) / sum(e, -1, Keep::yes); }},
      {"sum", [](const Tensor& e, const Tensor&) { return sum(e, -1); }},
  };
  return all;
}

// The largest error of compiled f32 relative to its row's uncompiled float64, whose terms are all positive.
double error_of(Context& ctx, const Exponent& e, const Use& use, const Shape& shape, double spread,
                std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (double& v : values)
    v = static_cast<float>(std::uniform_real_distribution<double>(-spread, spread)(random));
  const Tensor s = ctx.from(values, shape), v = ctx.full({shape[1], 8}, 0.5, DType::f64);
  const auto f = [&](const Tensor& x, const Tensor& w) { return use(exponentials(x, e), w); };
  const Tensor got = cast(compile(f)(cast(s, DType::f32), cast(v, DType::f32)), DType::f64);
  const Tensor exact = compile(f, {.fuse = false})(s, v);
  // NaN where it is any element's.
  return max(abs(got - exact) / abs(exact)).item();
}

// An exponent of up to 4 × 20, of which four terms and three sums are rounded; sums of 700 terms add as many
// roundings at most.
constexpr double kBound = 80 * 7 * 0x1p-24 + 700 * 0x1p-24;

TEST(ShiftedExponents, AreThoseOfTheirDefinition) {
  Context ctx({.cache_directory = test::kernel_folder()});
  std::mt19937 random(1);
  const double coefficients[] = {-1, -0.5, 0, 0.5, 1};
  const auto coefficient = [&] { return coefficients[random() % std::size(coefficients)]; };
  std::vector<Exponent> all = {{1, 1, 0, 0}, {1, -0.5, -0.5, 0}, {-1, 0, 1, 0}, {1, 0, 0, -1}, {1, -1, 0, 0}};
  for (int i = 0; i < 5; ++i)
    all.push_back({random() % 2 == 0 ? 1.0 : -1.0, coefficient(), coefficient(), coefficient()});
  for (const Exponent& e : all)
    for (const auto& [name, use] : uses())
      for (const Shape& shape : {Shape{5, 4}, Shape{33, 700}}) {
        SCOPED_TRACE(fmt::format("exp({} s + {} max + {} min + {} max above 0), {}, {}", e.own, e.max, e.min,
                                 e.above_zero, name, to_string(shape)));
        EXPECT_LE(error_of(ctx, e, use, shape, 20, random()), kBound);
      }
}

// exp(s + max s) of rows that begin far below zero: what was summed before the maximum came has vanished in
// f32, and is not what it must become.
TEST(ShiftedExponents, GrowFromWhatHasVanished) {
  Context ctx({.cache_directory = test::kernel_folder()});
  std::vector<float> rows(2 * 4096, -60.0F);
  rows[4095] = 60;
  rows[8191] = 40;
  const Tensor s = ctx.from(rows, {2, 4096}), v = ctx.ones({4096, 4});
  const auto f = [](const Tensor& x, const Tensor& w) {
    return matmul(where(x > 0.0, 0.0, exp(x + max(x, -1, Keep::yes))), w);
  };
  const Tensor got = compile(f)(s, v),
               exact = compile(f, {.fuse = false})(cast(s, DType::f64), cast(v, DType::f64));
  EXPECT_LE(max(abs(cast(got, DType::f64) - exact) / exact).item(), kBound + 4096 * 0x1p-24);
}

// A row far below its shift, whose exponentials are all subnormal, e⁻⁹⁰ = 585,000 of the least numbers: their
// average is no 0 / 0.
TEST(ShiftedExponents, AreKeptWhereNoneIsLarge) {
  Context ctx({.cache_directory = test::kernel_folder()});
  for (const Index depth : {8, 64}) {
    const auto f = compile([](const Tensor& s, const Tensor& v) {
      const Tensor e = exp(s - maximum(max(s, -1, Keep::yes), 0.0));
      return matmul(e, v) / sum(e, -1, Keep::yes);
    });
    const Tensor got = f(ctx.full({512, 2048}, -90), ctx.full({2048, depth}, 0.5));
    EXPECT_LE(max(abs(got - 0.5)).item(), 1e-5) << depth;
  }
}

// A product with softmax, and with the same by hand, is one kernel: its maximum moves along.
TEST(ShiftedExponents, OfSoftmaxAreOneKernelWithTheirProduct) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const auto f = compile([](const Tensor& s, const Tensor& v) {
    const Tensor e = exp(s - max(s, -1, Keep::yes));
    return matmul(e, v) / sum(e, -1, Keep::yes);
  });
  f(ctx.ones({512, 2048}), ctx.ones({2048, 8}));
  EXPECT_EQ(f.report().front().kernels.size(), 1u);
}

}  // namespace
}  // namespace tilewright
