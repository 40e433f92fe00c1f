// Products of quantised operands: scales of every granularity against loops on the host, one kernel that
// stores no block's product, and what users do wrong.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "support/draws.h"
#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using test::expect_says;

std::size_t place(Index i) { return static_cast<std::size_t>(i); }

class ScaledMatmul : public ::testing::TestWithParam<const char*> {
 protected:
  // A random tensor as 8 bits hold it.
  Tensor quantised(const Shape& shape, DType dtype) { return cast(ctx_.randn(shape), dtype); }
  Tensor scales(const Shape& shape) { return exp(ctx_.randn(shape)); }
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

// The scale of element i of `elements`, of which there are 1, one each, or one for each 128.
Index scale_at(Index scales, Index elements, Index i) {
  return scales == 1 ? 0 : scales == elements ? i : i / 128;
}

void expect_product(const Tensor& y, const Tensor& a, const Tensor& sa, const Tensor& b, const Tensor& sb) {
  const Index m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  ASSERT_EQ(y.shape(), (Shape{m, n}));
  ASSERT_EQ(y.dtype(), DType::f32);
  const auto value = [](const Tensor& t) { return cast(t, DType::f32).to_vector<float>(); };
  const std::vector<float> got = value(y), x = value(a), w = value(b), xs = value(sa), ws = value(sb);
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      double want = 0, size = 0;
      for (Index p = 0; p < k; ++p) {
        const Index ra = scale_at(sa.shape()[0], m, i), ka = scale_at(sa.shape()[1], k, p),
                    kb = scale_at(sb.shape()[0], k, p), cb = scale_at(sb.shape()[1], n, j);
        const double term = double{x[place(i * k + p)]} * double{xs[place(ra * sa.shape()[1] + ka)]} *
                            double{w[place(p * n + j)]} * double{ws[place(kb * sb.shape()[1] + cb)]};
        want += term, size += std::abs(term);
      }
      ASSERT_NEAR(double{got[place(i * n + j)]}, want, 1e-6 * size) << i << ", " << j;
    }
}

struct ScaledCase {
  Index m, n, k;
  Shape scale_a, scale_b;
};

TEST_P(ScaledMatmul, TakesScalesOfEveryGranularity) {
  constexpr std::array kTypes = {DType::f8e4m3, DType::i8, DType::bf16};
  std::size_t number = 0;
  for (const ScaledCase& c :
       {ScaledCase{5, 256, 384, {5, 3}, {3, 2}}, ScaledCase{130, 70, 256, {130, 2}, {2, 1}},
        ScaledCase{130, 200, 300, {2, 3}, {3, 2}},  // blocks that end early
        ScaledCase{17, 140, 256, {1, 2}, {1, 140}}, ScaledCase{9, 33, 200, {9, 1}, {1, 33}},
        ScaledCase{4, 5, 100, {1, 1}, {1, 1}}, ScaledCase{1, 256, 256, {1, 2}, {2, 2}},
        ScaledCase{64, 1, 256, {64, 2}, {2, 1}}, ScaledCase{1, 1, 256, {1, 2}, {2, 1}},
        ScaledCase{3, 4, 0, {3, 1}, {1, 4}}}) {
    SCOPED_TRACE(to_string(c.scale_a) + " " + to_string(c.scale_b));
    ++number;
    for (std::size_t i = 0; i < test::draws(kTypes.size()); ++i) {  // each case in one type at least
      const DType dtype = kTypes[(number + i) % kTypes.size()];
      const Tensor a = quantised({c.m, c.k}, dtype), b = quantised({c.k, c.n}, dtype);
      const Tensor sa = scales(c.scale_a), sb = scales(c.scale_b);
      expect_product(scaled_matmul(a, sa, b, sb), a, sa, b, sb);
    }
  }
}

TEST_P(ScaledMatmul, MultipliesEightBitFloatsOfTwoTypes) {
  const Tensor a = quantised({33, 256}, DType::f8e4m3), b = quantised({256, 130}, DType::f8e5m2);
  const Tensor sa = scales({33, 2}), sb = scales({2, 2});
  expect_product(scaled_matmul(a, sa, b, sb), a, sa, b, sb);
}

TEST_P(ScaledMatmul, StoresNoProductOfABlock) {
  const auto layer = compile([](const Tensor& a, const Tensor& sa, const Tensor& b, const Tensor& sb) {
    return cast(relu(scaled_matmul(a, sa, transpose(b, {1, 0}), sb)), DType::bf16);
  });
  layer(quantised({64, 512}, DType::f8e4m3), scales({64, 4}), quantised({256, 512}, DType::f8e4m3),
        scales({4, 2}));
  const SpecialisationReport report = layer.report().front();
  EXPECT_EQ(report.kernels.size(), 1U) << layer.explain();
  EXPECT_EQ(report.arena_bytes, 0);
}

TEST_P(ScaledMatmul, BatchesShareWhatHasNone) {
  const Tensor a = quantised({2, 20, 256}, DType::f8e4m3), b = quantised({256, 130}, DType::f8e4m3);
  const Tensor sa = scales({2, 20, 2}), sb = scales({2, 2});
  const Tensor y = scaled_matmul(a, sa, b, sb);
  ASSERT_EQ(y.shape(), (Shape{2, 20, 130}));
  for (Index g = 0; g < 2; ++g) expect_product(select(y, 0, g), select(a, 0, g), select(sa, 0, g), b, sb);
}

TEST_P(ScaledMatmul, SaysWhatDoesNotFit) {
  const auto says = [&](const std::function<void()>& mistake, const std::string& part) {
    expect_says(mistake, {part, "scaled_matmul_test.cpp:"});
  };
  const Tensor a = ctx_.zeros({16, 256}), b = ctx_.zeros({256, 128}), one = ctx_.zeros({1, 1});
  says([&] { scaled_matmul(a, one, ctx_.zeros({255, 128}), one); }, "inner dims differ");
  says([&] { scaled_matmul(a, ctx_.zeros({16, 3}), b, one); }, "operand f32[16,256], scale f32[16,3]");
  says([&] { scaled_matmul(a, ctx_.zeros({15, 2}), b, one); }, "scale f32[15,2]");
  says([&] { scaled_matmul(a, one, b, ctx_.zeros({1, 3})); }, "operand f32[256,128], scale f32[1,3]");
  says([&] { scaled_matmul(a, one, b, ctx_.zeros({128})); }, "scale f32[128]");
  says([&] { scaled_matmul(a, ctx_.zeros({1, 1}, DType::i32), b, one); }, "scale i32[1,1]");
  says([&] { scaled_matmul(ctx_.zeros({256}), one, b, one); }, "wants matrices");
}

INSTANTIATE_TEST_SUITE_P(Devices, ScaledMatmul, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tilewright
