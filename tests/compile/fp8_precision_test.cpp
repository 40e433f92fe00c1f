// CompileOptions::precision of 8 bits, as users call it: values, depths of any length, zeros, infinities and
// NaN, what explain() says, and a step that learns.
#include <tilewright/tensor/attention.h>
#include <tilewright/tensor/non_finite.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

constexpr Precision kBoth[] = {Precision::fp8, Precision::fp8_block};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Fp8Precision : public testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder(), .seed = 5}};
  static Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b); }
};

// Each factor is rounded by at most 2⁻⁴ of itself, or by half a subnormal code of its largest over 448.
TEST_P(Fp8Precision, ProductsOfAnyDepthAreWithinTheirRoundings) {
  for (const Precision precision : kBoth)
    for (const Shape& sizes : {Shape{3, 2, 5}, Shape{5, 127, 4}, Shape{16, 128, 130}, Shape{130, 300, 7}}) {
      SCOPED_TRACE(std::string(name(precision)) + " " + to_string(sizes));
      const Index m = sizes[0], k = sizes[1], n = sizes[2];
      const Tensor a = ctx_.randn({m, k}) * 30.f, b = ctx_.randn({k, n}) * 0.01f;
      const auto got = compile(product, {.precision = precision})(a, b).to_vector<double>();
      const auto exact = matmul(a, b).to_vector<double>(), size = matmul(abs(a), abs(b)).to_vector<double>();
      // Half a subnormal code is 2⁻¹⁰ of 448ths of the largest, 5 deviations, against numbers of 0.8 of one.
      const double bound = 2 * 0x1p-4 + 0x1p-8 + 2 * 0x1p-10 / 448 * 5 / 0.8 + 1e-5;
      double most = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_LE(std::abs(got[i] - exact[i]), bound * size[i]) << i;
        most = std::max(most, std::abs(got[i] - exact[i]) / size[i]);
      }
      EXPECT_GT(most, 1e-4);
    }
}

TEST_P(Fp8Precision, NumbersThatEightBitsHoldAreMultipliedExactly) {
  // Powers of two up to 1 become 448 times themselves, over 448 again.
  const Tensor a = ctx_.full({4, 130}, 0.5), b = ctx_.full({130, 3}, 0.25);
  for (const Precision precision : kBoth)
    for (const double v : compile(product, {.precision = precision})(a, b).to_vector<double>())
      EXPECT_NEAR(v, 130 * 0.125, 130 * 0.125 * 4 * 0x1p-24);
}

TEST_P(Fp8Precision, ZerosGiveZero) {
  for (const Precision precision : kBoth) {
    const auto narrow = compile(product, {.precision = precision});
    const Tensor zero = ctx_.zeros({4, 130}), w = ctx_.randn({130, 3});
    for (const double v : narrow(zero, w).to_vector<double>()) EXPECT_EQ(v, 0);
    for (const double v : narrow(ctx_.randn({4, 130}), ctx_.zeros({130, 3})).to_vector<double>())
      EXPECT_EQ(v, 0);
  }
}

// 8 bits have no infinity: what is not finite becomes NaN, of all that shares a scale with it, and nothing
// that is not finite becomes finite.
TEST_P(Fp8Precision, InfinitiesAndNanAreNotLost) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")})
    for (const Precision precision : kBoth) {
      const auto narrow = compile(product, {.precision = precision});
      std::vector<float> values(3 * 256, 0.5F);
      values[256 + 7] = static_cast<float>(bad);  // the second row
      const Tensor a = ctx_.from(values, {3, 256}), b = ctx_.full({256, 2}, 0.5);
      const auto left = narrow(a, b).to_vector<double>();
      for (std::size_t i = 0; i < left.size(); ++i) {
        const bool shares = precision == Precision::fp8 || i / 2 == 1;
        EXPECT_EQ(std::isnan(left[i]), shares) << name(precision) << " " << bad << " " << i;
      }
      for (const double v : narrow(b.T(), a.T()).to_vector<double>()) EXPECT_TRUE(std::isnan(v)) << v;
    }
}

TEST_P(Fp8Precision, WhatMadeAnInfinityIsFound) {
  const auto f = [](const Tensor& x, const Tensor& w) { return sum(matmul(exp(x), w)); };
  const Tensor x = ctx_.full({2, 8}, 100), w = ctx_.ones({8, 3});
  for (const Precision precision : kBoth) {
    const auto found = find_non_finite(f, precision)(x, w);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->operation, "exp");
  }
}

TEST_P(Fp8Precision, ExplainSaysWhatRunsInWhat) {
  const auto step = [](const Tensor& w, const Tensor& x) {
    return value_and_grad([&](const Tensor& p) { return mean(square(relu(matmul(x, p)))); })(w);
  };
  const Tensor w = ctx_.randn({16, 5}), x = ctx_.randn({6, 16});
  const auto by_tensor = compile(step, {.precision = Precision::fp8}),
             by_block = compile(step, {.precision = Precision::fp8_block});
  (void)by_tensor(w, x);
  (void)by_block(w, x);
  for (const char* part :
       {"precision fp8: 2 products of 8-bit floats with a scale for each operand, 0 products of "
        "bf16 with sums of f32\n",
        "matmul f8e4m3, sums f32", "f8e4m3 x f8e5m2, sums f32"})
    EXPECT_NE(by_tensor.explain().find(part), std::string::npos) << part << by_tensor.explain();
  for (const char* part :
       {"precision fp8-block: 2 products of 8-bit floats with scales of blocks, 0 products of "
        "bf16",
        "matmul f8e4m3, sums f32"})
    EXPECT_NE(by_block.explain().find(part), std::string::npos) << part << by_block.explain();
}

TEST_P(Fp8Precision, AttentionIsThatOfBf16) {
  const auto f = [](const Tensor& q) { return attention(q, q, q, {.mask = causal_mask()}); };
  const Tensor q = ctx_.randn({1, 2, 9, 8});
  const auto of = [&](Precision p) { return compile(f, {.precision = p})(q).to_vector<double>(); };
  for (const Precision precision : kBoth) EXPECT_EQ(of(precision), of(Precision::bf16));
}

// A small network learns as it does in f32.
TEST_P(Fp8Precision, AStepLearns) {
  const Tensor x = ctx_.randn({64, 20}), target = sin(matmul(x, ctx_.randn({20, 4}) * 0.2f));
  const auto last_loss = [&](Precision precision) {
    Context ctx({.device = GetParam(), .cache_directory = test::kernel_folder(), .seed = 6});
    const Tensor in = ctx.from(x.to_vector<float>(), x.shape()),
                 out = ctx.from(target.to_vector<float>(), {64, 4});
    const auto step = compile(
        [](const Tensor& w, const Tensor& v, const Tensor& a, const Tensor& b) {
          const auto [value, gradient] = value_and_grad([&](const std::pair<Tensor, Tensor>& p) {
            return mean(square(matmul(tanh(matmul(a, p.first)), p.second) - b));
          })(std::pair{w, v});
          return std::tuple{value, w - gradient.first * 0.3, v - gradient.second * 0.3};
        },
        {.precision = precision});
    Tensor w = ctx.randn({20, 32}) * 0.2f, v = ctx.randn({32, 4}) * 0.2f, loss;
    for (int i = 0; i < 200; ++i) std::tie(loss, w, v) = step(w, v, in, out);
    return loss.item();
  };
  const double wide = last_loss(Precision::f32);
  for (const Precision precision : kBoth)
    EXPECT_NEAR(last_loss(precision), wide, 0.2 * wide) << name(precision);
}

INSTANTIATE_TEST_SUITE_P(Devices, Fp8Precision, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
