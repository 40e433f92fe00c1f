// Statistics of narrow types keep the range and the digits of f32 between kernels, wherever those are cut.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Pointwise = std::function<Tensor(const Tensor&)>;

// Rows are the last axis of a matrix.
const std::vector<std::pair<std::string, Pointwise>>& statistics() {
  static const std::vector<std::pair<std::string, Pointwise>> all = {
      {"mean", [](const Tensor& x) { return mean(x, {1}); }},
      {"mean of squares", [](const Tensor& x) { return mean(square(x * (1.0 / 64)), {1}); }},
      {"std", [](const Tensor& x) { return sqrt(var(x, {1})); }},
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, {1}); }},
      {"softmax", [](const Tensor& x) { return softmax(x * (1.0 / 64)) * 300.0; }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {}); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {}, {}); }},
  };
  return all;
}

// What is computed of a statistic and of a matrix, in another kernel: it is reduced, turned, added up or
// multiplied with the matrix.
using Reader = std::function<Tensor(const Tensor&, const Tensor&)>;
const std::vector<std::pair<std::string, Reader>>& readers() {
  static const std::vector<std::pair<std::string, Reader>> all = {
      {"alone", [](const Tensor& s, const Tensor&) { return s; }},
      {"summed", [](const Tensor& s, const Tensor&) { return sum(cast(s, DType::f32)); }},
      {"running sum", [](const Tensor& s, const Tensor&) { return cumsum(cast(s, DType::f32), 0); }},
      {"with its mean", [](const Tensor& s, const Tensor&) { return s + mean(s); }},
      {"turned", [](const Tensor& s,
                    const Tensor&) { return s.shape().rank() < 2 ? s * 0.5 : swap_axes(s, 0, 1) * 0.5; }},
      {"times a matrix",
       [](const Tensor& s, const Tensor& w) {
         const Tensor rows = s.shape().rank() < 2 ? unsqueeze(s, 0) : s;
         return matmul(rows, slice(w, 0, {0, rows.shape()[1]}));
       }},
  };
  return all;
}

// Values whose squares, and whose rows' sums, are beyond what f16 holds.
Tensor large_values(Context& ctx, const Shape& shape) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(shape.size()));
  for (Index i = 0; i < shape.size(); ++i) values.push_back(300 + static_cast<float>(i * 37 % 101 - 50));
  return ctx.from(values, shape);
}

TEST(Statistics, OfNarrowTypesNeitherOverflowNorLoseDigits) {
  Context ctx({.cache_directory = test::kernel_folder()});
  for (const auto& [dtype, shape] :
       {std::pair{DType::f16, Shape{8, 1024}}, std::pair{DType::f16, Shape{65, 300}},
        std::pair{DType::bf16, Shape{8, 1024}}})
    for (const auto& [name, statistic] : statistics())
      for (const auto& [use, reader] : readers())
        for (const bool fuse : {true, false}) {
          if (!fuse && use != "alone" && use != "times a matrix") continue;
          SCOPED_TRACE(fmt::format("{}, {}, {}{}", name, use, to_string(shape), fuse ? "" : ", apart"));
          const Tensor x = cast(large_values(ctx, shape), dtype);
          const Tensor w = ctx.full({1024, 5}, 1.0 / 256, dtype);
          const auto f = [&](const Tensor& t, const Tensor& m) { return reader(statistic(t), m); };
          const Tensor got = cast(compile(f, {.fuse = fuse})(x, w), DType::f64);
          const Tensor exact = statistic(cast(x, DType::f64)), matrix = cast(w, DType::f64);
          const double error = max(abs(got - reader(exact, matrix))).item();
          // The statistic is rounded, what is read of it, and between them what two kernels pass on;
          // readers are linear, so that their terms' sizes bound what the roundings come to. The scaled
          // operands of `mean of squares` and `softmax` may be rounded, too: an exponent of up to 6 then
          // moves a weight by as many roundings.
          const double roundings = name == "softmax" ? 12 : 6;
          EXPECT_LE(error, roundings * unit_roundoff(dtype) * max(reader(abs(exact), matrix)).item());
        }
}

// The normalized row does not change with the size of its values; its gradient goes down as they go up.
TEST(Statistics, GradientsOfNormsHoldForLargeValues) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Tensor x = ctx.from(std::vector<float>{1, -1, 0.5, 0.25, -0.3}, {1, 5});
  const Tensor weights = ctx.from(std::vector<float>{1, -2, 3, 0.5, 2}, {1, 5});
  for (const bool centered : {true, false}) {
    const auto loss = [&](const Tensor& t) {
      return sum(weights * (centered ? layer_norm(t, {}, {}, 0.0) : rms_norm(t, {}, 0.0)));
    };
    const Tensor want = grad(loss)(x);
    for (const int exponent : {-50, -30, 30, 50, 58}) {  // a square at 2^58 is near the largest f32
      SCOPED_TRACE(exponent);
      const double scale = std::ldexp(1.0, exponent);
      const Tensor got = grad(loss)(x * scale) * scale;
      EXPECT_LE(max(abs(got - want)).item(), 0x1p-20 * max(abs(want)).item());
    }
  }
}

// Rows that no program keeps are summed in parts (passes/graph/variances_by_parts.h): what the parts' means
// are apart has room wherever the variance has.
TEST(Statistics, VariancesOfLongRows) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const Index length = 1 << 21, high = 1 << 12;
  const std::vector<Tensor> parts{ctx.full({1, high}, 1e16), ctx.zeros({1, length - high})};
  const Tensor x = concat(parts, 1);
  const double share = static_cast<double>(high) / static_cast<double>(length);
  auto f = compile([](const Tensor& t) { return var(t, {1}); });
  EXPECT_NEAR(f(x).item() / 1e32, share * (1 - share), 1e-6);
  EXPECT_EQ(f.report()[0].kernels.size(), 2u) << "x is read once";
  EXPECT_NEAR(f(x + 1e16).item() / 1e32, share * (1 - share), 1e-4);
}

}  // namespace
}  // namespace tilewright
