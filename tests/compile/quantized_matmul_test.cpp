// Weights of 8 and of 4 bits under scales of groups: values against loops on the host, bytes that no kernel
// unpacks into memory, and what users do wrong.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using test::expect_says;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

class QuantizedMatmul : public ::testing::TestWithParam<const char*> {
 protected:
  // Whole numbers from `low` to `high`.
  std::vector<std::int8_t> numbers(Index count, Index low, Index high) {
    std::vector<std::int8_t> out;
    out.reserve(static_cast<std::size_t>(count));
    for (Index i = 0; i < count; ++i)
      out.push_back(static_cast<std::int8_t>(low + i * 7919 % 1009 % (high - low + 1)));
    return out;
  }
  // One core: where several share the work, a group of its own for each part of k may keep more of them busy.
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder(), .threads = 1}};
};

std::vector<float> values(const Tensor& t) { return cast(t, DType::f32).to_vector<float>(); }

void expect_product(const Tensor& y, const Tensor& x, const std::vector<std::int8_t>& w,
                    const Tensor& scales) {
  const Index m = x.shape()[0], k = x.shape()[1], n = y.shape()[1], groups = scales.shape()[0];
  const std::vector<float> got = values(y), a = values(x), s = values(scales);
  const double storage = y.dtype() == DType::f32 ? 1e-6 : 0x1p-8;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      double want = 0, size = 0;
      for (Index p = 0; p < k; ++p) {
        const double term =
            double{a[at(i * k + p)]} * double{s[at(p / (k / groups) * n + j)]} * w[at(p * n + j)];
        want += term, size += std::abs(term);
      }
      // Few rows round each weight to the type of x once.
      ASSERT_NEAR(double{got[at(i * n + j)]}, want, storage * (std::abs(want) + size)) << i << ", " << j;
    }
}

struct QuantizedCase {
  Index m, n, k, groups;
};

TEST_P(QuantizedMatmul, ScalesGroupsOfWeights) {
  const auto product =
      compile([](const Tensor& x, const Tensor& w, const Tensor& s) { return quantized_matmul(x, w, s); });
  for (const QuantizedCase& c : {QuantizedCase{37, 50, 256, 4}, QuantizedCase{3, 64, 256, 2},
                                 QuantizedCase{1, 40, 96, 3}, QuantizedCase{20, 30, 40, 1}}) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const std::vector<std::int8_t> w = numbers(c.k * c.n, -128, 127);
      const Tensor x = cast(ctx_.randn({c.m, c.k}), dtype), s = exp(ctx_.randn({c.groups, c.n}));
      const Tensor y = product(x, ctx_.from(w, {c.k, c.n}), s);
      ASSERT_EQ(y.dtype(), dtype);
      expect_product(y, x, w, s);
    }
  }
  if (GetParam() == std::string("reference"))
    return;  // its rates are no machine's: packing costs it more than memory
  for (const SpecialisationReport& report : product.report())
    EXPECT_EQ(report.kernels.size(), 1U) << product.explain();
}

TEST_P(QuantizedMatmul, UnpacksFourBitsWhereTheyAreMultiplied) {
  const auto product = compile([](const Tensor& x, const Tensor& packed, const Tensor& s) {
    return quantized_matmul(x, unpack_int4(packed), s);
  });
  for (const QuantizedCase& c : {QuantizedCase{33, 64, 256, 2}, QuantizedCase{2, 64, 128, 4}}) {
    const std::vector<std::int8_t> w = numbers(c.k * c.n, -8, 7);
    const Tensor packed = pack_int4(ctx_.from(w, {c.k, c.n}));
    ASSERT_EQ(packed.shape(), (Shape{c.k, c.n / 2}));
    EXPECT_EQ(unpack_int4(packed).to_vector<std::int8_t>(), w);
    const Tensor x = cast(ctx_.randn({c.m, c.k}), DType::bf16), s = exp(ctx_.randn({c.groups, c.n}));
    expect_product(product(x, packed, s), x, w, s);
  }
  for (const SpecialisationReport& report : product.report()) {
    EXPECT_EQ(report.kernels.size(), 1U) << product.explain();
    EXPECT_EQ(report.arena_bytes, 0);
  }
}

TEST_P(QuantizedMatmul, TakesRowsOfAnyShapeAndNoneAtAll) {
  const Tensor w = ctx_.from(numbers(64 * 10, -128, 127), {64, 10}), s = ctx_.randn({2, 10});
  const Tensor x = ctx_.randn({2, 7, 64});
  const Tensor y = quantized_matmul(x, w, s);
  ASSERT_EQ(y.shape(), (Shape{2, 7, 10}));
  const std::vector<float> flat = quantized_matmul(reshape(x, {14, 64}), w, s).to_vector<float>(),
                           got = y.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], flat[i], 1e-3f * (1 + std::abs(flat[i])));
  EXPECT_EQ(quantized_matmul(ctx_.zeros({0, 64}), w, s).shape(), (Shape{0, 10}));
}

TEST_P(QuantizedMatmul, SaysWhatDoesNotFit) {
  const auto says = [&](const std::function<void()>& mistake, const std::string& part) {
    expect_says(mistake, {part, "quantized_matmul_test.cpp:"});
  };
  const Tensor x = ctx_.zeros({4, 64}), w = ctx_.zeros({64, 10}, DType::i8), s = ctx_.zeros({2, 10});
  says([&] { quantized_matmul(x, ctx_.zeros({64, 10}), s); }, "wants weights as (K, N) of i8");
  says([&] { quantized_matmul(x, w, ctx_.zeros({3, 10})); }, "K is no multiple of the groups");
  says([&] { quantized_matmul(x, w, ctx_.zeros({2, 9})); }, "scales and weights differ in N");
  says([&] { quantized_matmul(ctx_.zeros({4, 63}), w, s); }, "x and weights differ in K");
  says([&] { quantized_matmul(ctx_.zeros({4, 64}, DType::i32), w, s); }, "wants rows of floats");
  says([&] { pack_int4(ctx_.zeros({4, 3}, DType::i8)); }, "two columns go into a byte");
  says([&] { unpack_int4(ctx_.zeros({4, 3})); }, "wants a matrix of i8");
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedMatmul, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tilewright
