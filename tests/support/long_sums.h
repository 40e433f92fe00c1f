// Sums of millions of equal terms, whose roundings all go one way: what each is off by, in every layout.
#pragma once

#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::test {

inline constexpr Index kLength = 3'000'000;
// What f32 has for 0.1.
inline constexpr double kEach = static_cast<double>(0.1f);
// What comes before an element of a running sum is exact but for a few roundings: as PyTorch's 3e-7.
inline constexpr double kRunningError = 1e-6;

// The error of a sum of equal terms, relative to it, after up to `most` additions one after another in f32.
inline double worst_of_chain(float each, int most) {
  double worst = 0;
  float sum = 0;
  for (int i = 1; i <= most; ++i) {
    sum += each;
    worst = std::max(worst, std::abs(static_cast<double>(sum) / (static_cast<double>(each) * i) - 1));
  }
  return worst;
}

// The largest error of a running sum of equal numbers, relative to it.
inline double worst_of_running(const std::vector<float>& got) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = kEach * static_cast<double>(i + 1);
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want) / want);
  }
  return worst;
}

struct Layout {
  const char* name;
  Shape shape;
  std::vector<Index> axes;
};

inline std::vector<Layout> layouts() {
  return {{"whole", {kLength}, {0}},
          {"columns of one", {kLength, 1}, {0}},
          {"columns", {kLength / 3, 3}, {0}},
          {"many columns", {kLength / 600, 600}, {0}},
          {"rows", {3, kLength / 3}, {1}},
          {"rows that fit on chip", {50, kLength / 50}, {1}},
          {"all rows", {kLength / 300, 300}, {1, 0}},
          {"all columns", {300, kLength / 300}, {1, 0}},
          {"the middle", {2, kLength / 6, 3}, {1}},
          {"the middle of many", {2, kLength / 1000, 500}, {1}},
          {"both ends", {kLength / 600, 3, 200}, {0, 2}},
          {"the outer two", {100, kLength / 300, 3}, {0, 1}}};
}

// A sum of equal terms: the largest relative error of its elements, and what the stated chain allows.
struct LongSum {
  std::string what;
  double error = 0, most = 0;
};

// The largest error of `got`'s elements, each of which should be `want`.
inline double worst_of(const Tensor& got, double want) {
  double worst = 0;
  for (float each : cast(got, DType::f32).to_vector<float>()) {
    const double error = std::abs(static_cast<double>(each) / want - 1);
    worst = std::isnan(error) ? error : std::max(worst, error);
  }
  return worst;
}

// Sums, means, variances, products and bias gradients of millions of equal terms in every layout, eager and
// compiled, each reported when it is known. `most`: the error that a sum may have; products are held to the
// chain of their blocks.
inline void long_sums(Context& ctx, double most, const std::function<void(const LongSum&)>& report) {
  const auto note = [&](const Tensor& got, double want, double allowed, std::string what) {
    report({std::move(what), worst_of(got, want), allowed});
  };
  for (const Layout& l : layouts()) {
    const Tensor x = ctx.full(l.shape, 0.1);
    double terms = 1;
    for (Index axis : l.axes) terms *= static_cast<double>(l.shape[static_cast<int>(axis)]);
    const auto total = [&](const Tensor& t) { return sum(t, l.axes); };
    note(total(x), kEach * terms, most, std::string("sum, ") + l.name);
    note(compile(total)(x), kEach * terms, most, std::string("compiled sum, ") + l.name);
    note(mean(x, l.axes), kEach, most, std::string("mean, ") + l.name);
  }
  const Tensor x = ctx.full({kLength}, 0.1);
  note(logsumexp(x), std::log(static_cast<double>(kLength)) + kEach, most, "logsumexp");
  // Products add up a block of the depth in f32, one after another, and blocks in f64.
  const double most_of_products = worst_of_chain(0.01f, 4112 / 4);  // of dot_few, by the fewest lanes
  note(matmul(x, x), kEach * kEach * static_cast<double>(kLength), most_of_products, "dot product");
  for (Index columns : {1, 3, 64})
    for (Index rows : {1, 8}) {
      constexpr Index kDepth = 200'000;
      const Tensor a = ctx.full({rows, kDepth}, 0.1), b = ctx.full({kDepth, columns}, 0.1);
      note(matmul(a, b), kEach * kEach * kDepth, most_of_products, "product");
    }
  // The depth across in memory, as in the gradient of weights; 131,072 is 32 of the longest blocks.
  const auto turned = [](const Tensor& x, const Tensor& y) { return matmul(swap_axes(x, 0, 1), y); };
  for (Index depth : {131'072, 200'000})
    for (Index rows : {4, 17}) {
      const Tensor a = ctx.full({depth, rows}, 0.1), b = ctx.full({depth, 1}, 0.1);
      note(compile(turned)(a, b), kEach * kEach * static_cast<double>(depth), most_of_products,
           "turned product");
    }
  note(mean(ctx.full({200'000}, 1.0, DType::f16)), 1, most, "mean of f16");
  // 0.1 above and below a mean.
  std::vector<float> both(kLength);
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = i % 2 == 0 ? 0.1f : -0.1f;
  note(var(ctx.from(both, {kLength})), kEach * kEach, most, "variance");
  note(var(ctx.from(both, {kLength / 2, 2}), {0}) + 1, 1, most, "variance of columns");
  note(var(ctx.from(both, {2, kLength / 2}), {1}), kEach * kEach, most, "variance of rows");
  // The gradient of a bias is a sum over rows; that of a number a sum of all.
  const auto loss = [](const Tensor& bias, const Tensor& t) { return sum((t + bias) * 0.1f); };
  for (const Shape& shape : {Shape{3}, Shape{1}, Shape{600}}) {
    const Index columns = std::max<Index>(shape[0], 3);
    const Tensor rows = ctx.full({kLength / columns, columns}, 0.1), bias = ctx.zeros(shape);
    const double terms = static_cast<double>(rows.shape().size()) / static_cast<double>(shape[0]);
    const auto slope = [&](const Tensor& b) {
      return grad([&](const Tensor& c) { return loss(c, rows); })(b);
    };
    note(slope(bias), kEach * terms, most, "gradient of a bias");
  }
}

}  // namespace tilewright::test
