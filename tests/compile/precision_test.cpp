// CompileOptions::precision: what products are rounded to, in which programs, and what explain() says of it.
#include <tilewright/tensor/non_finite.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

// Numbers that are next to 1 in f32, and 1 in a narrower type: what a product multiplied is seen in its
// result.
constexpr double kAboveF16 = 1 + 0x1p-14, kAboveBf16 = 1 + 0x1p-9;
constexpr Index kDepth = 8;

class PrecisionTest : public testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  Tensor filled(double value, const Shape& shape = {4, kDepth}) { return ctx_.full(shape, value); }
  const Tensor ones_ = ctx_.ones({kDepth, 3});
  static Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b); }
  static double first(const Tensor& t) { return t.to_vector<double>()[0]; }
};

TEST_P(PrecisionTest, RoundsFactorsOfProductsAndNothingElse) {
  const auto of = [&](Precision precision, double value) {
    return first(compile(product, {.precision = precision})(filled(value), ones_)) / kDepth;
  };
  EXPECT_EQ(of(Precision::f32, kAboveF16), kAboveF16);
  EXPECT_EQ(of(Precision::f16, kAboveF16), 1);
  EXPECT_EQ(of(Precision::f16, kAboveBf16), kAboveBf16);
  EXPECT_EQ(of(Precision::bf16, kAboveBf16), 1);
  const auto rest = [](const Tensor& x) {
    return sum(softmax(x) * x + layer_norm(x, std::nullopt, std::nullopt));
  };
  const Tensor x = ctx_.randn({16, 40});
  EXPECT_EQ(compile(rest, {.precision = Precision::bf16})(x).item(), compile(rest)(x).item());
}

// 257 products of 1: a sum of bf16 would be 256. f16 has 257, so that nothing is lost between two products of
// it.
TEST_P(PrecisionTest, SumsAreF32) {
  const Tensor a = ctx_.ones({4, 257}), b = ctx_.ones({257, kDepth}), c = ctx_.ones({kDepth, 2});
  EXPECT_EQ(first(compile(product, {.precision = Precision::bf16})(a, b)), 257);
  const auto twice = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return matmul(matmul(x, y) - 256.0, z);
  };
  EXPECT_EQ(first(compile(twice, {.precision = Precision::f16})(a, b, c)), kDepth);
}

TEST_P(PrecisionTest, InputsResultsAndGradientsKeepTheirTypes) {
  const auto step = compile(
      [](const Tensor& w, const Tensor& x) {
        const auto [value, gradient] =
            value_and_grad([&](const Tensor& p) { return mean(square(relu(matmul(x, p)))); })(w);
        return std::tuple{value, gradient, w - gradient * 0.1};
      },
      {.precision = Precision::bf16});
  const Tensor w = ctx_.randn({kDepth, 5}), x = ctx_.randn({6, kDepth});
  const auto [value, gradient, next] = step(w, x);
  for (const Tensor& t : {value, gradient, next}) EXPECT_EQ(t.dtype(), DType::f32);
  const SpecialisationReport report = step.report().front();
  EXPECT_NE(report.graph.find("matmul %a1, %a0 : f32[6,5]"), std::string::npos) << report.graph;
  EXPECT_EQ(report.precision.find("bf16: 2 products of bf16 with sums of f32"), 0U) << report.precision;
  // The masters are updated in f32: the step is the one that the gradient says, to the last bit but one.
  const auto now = w.to_vector<double>(), slope = gradient.to_vector<double>(),
             after = next.to_vector<double>();
  for (std::size_t i = 0; i < now.size(); ++i)
    EXPECT_NEAR(after[i], now[i] - 0.1 * slope[i], 4 * 0x1p-24 * (std::abs(now[i]) + std::abs(slope[i])));
}

TEST_P(PrecisionTest, ExplainSaysWhichOperationRunsInWhichType) {
  const auto layer = [](const Tensor& x, const Tensor& w) { return exp(matmul(x, w) * 0.5); };
  const auto narrow = compile(layer, {.precision = Precision::bf16}), wide = compile(layer);
  (void)narrow(filled(1), ones_);
  (void)wide(filled(1), ones_);
  for (const char* part : {"precision bf16: 1 product of bf16 with sums of f32\n",
                           "types: matmul bf16, sums f32; mul exp f32\n"})
    EXPECT_NE(narrow.explain().find(part), std::string::npos) << part << narrow.explain();
  for (const char* part : {"precision", "types:"})
    EXPECT_EQ(wide.explain().find(part), std::string::npos) << wide.explain();
}

// One Context, one folder of kernels, one function: programs of each precision apart, whichever came first.
TEST_P(PrecisionTest, ProgramsAndKernelsOnDiskAreKeptApart) {
  const std::string folder = (std::filesystem::temp_directory_path() / "tw_precision_XXXXXX").string();
  std::string made = folder;
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const auto all_of = [&](const std::vector<Precision>& order) {
    Context ctx({.device = GetParam(), .cache_directory = made});
    // The last row is larger, so that a scale for all is not one that keeps the first.
    std::vector<float> values(4 * kDepth, static_cast<float>(kAboveBf16));
    std::fill(values.end() - kDepth, values.end(), 2.F);
    const Tensor x = ctx.from(values, {4, kDepth}), w = ctx.ones({kDepth, 3});
    std::map<Precision, double> got;
    for (const Precision p : order)  // but for the last bits, which scales change
      got[p] = std::round(first(compile(product, {.precision = p})(x, w)) / kDepth * 0x1p12) * 0x1p-12;
    return got;
  };
  const std::map<Precision, double> wanted{{Precision::f32, kAboveBf16}, {Precision::tf32, kAboveBf16},
                                           {Precision::bf16, 1},         {Precision::f16, kAboveBf16},
                                           {Precision::fp8, 1},          {Precision::fp8_block, kAboveBf16}};
  const std::vector<Precision> forward(std::begin(kAllPrecisions), std::end(kAllPrecisions)),
      back(forward.rbegin(), forward.rend());
  for (const auto& order : {forward, back, forward}) EXPECT_EQ(all_of(order), wanted);
  std::filesystem::remove_all(made);
}

TEST_P(PrecisionTest, HoldsForSizesThatChangeAndBehindGraphBreaks) {
  const auto rows = compile(product, {.precision = Precision::bf16, .dynamic = {{0, 0}}});
  for (const Index n : {3, 5, 8, 13})
    EXPECT_EQ(first(rows(filled(kAboveBf16, {n, kDepth}), ones_)), kDepth) << n;
  const auto broken = compile(
      [](const Tensor& a, const Tensor& b) {
        const Tensor before = matmul(a, b);
        return before.to_vector<float>().empty() ? before : before + matmul(a, b);
      },
      {.precision = Precision::bf16});
  EXPECT_EQ(first(broken(filled(kAboveBf16), ones_)), 2 * kDepth);
  EXPECT_NE(broken.explain().find("precision bf16: 1 product of bf16"), std::string::npos)
      << broken.explain();
}

// Options are those of the outermost function: a function within another is a part of that one.
TEST_P(PrecisionTest, IsThatOfTheFunctionThatIsCompiledOutermost) {
  const auto inner = compile(product, {.precision = Precision::bf16});
  const auto outer = compile([&](const Tensor& a, const Tensor& b) { return inner(a, b) * 1.f; });
  EXPECT_EQ(first(outer(filled(kAboveBf16), ones_)), kDepth * kAboveBf16);
  const auto narrow =
      compile([&](const Tensor& a, const Tensor& b) { return outer(a, b); }, {.precision = Precision::bf16});
  EXPECT_EQ(first(narrow(filled(kAboveBf16), ones_)), kDepth);
}

TEST_P(PrecisionTest, WhatIsWrittenInAnotherTypeIsMultipliedInThat) {
  const Tensor a = filled(kAboveBf16), b = ones_;
  for (const DType dtype : {DType::f64, DType::f16}) {
    const auto typed = [&](const Tensor& x, const Tensor& y) {
      return matmul(cast(x, dtype), cast(y, dtype));
    };
    EXPECT_EQ(first(compile(typed, {.precision = Precision::bf16})(a, b)), kDepth * kAboveBf16);
  }
}

TEST_P(PrecisionTest, AValueThatIsNoneIsAnError) {
  test::expect_says(
      [&] { (void)compile(product, {.precision = static_cast<Precision>(9)})(filled(1), ones_); },
      {"compile: CompileOptions::precision is 9", "take f32, tf32, bf16, f16, fp8 or fp8_block",
       "precision_test.cpp:"});
}

// 300² is beyond f16, and no product is in the way in f32.
TEST_P(PrecisionTest, OverflowsAreFoundWhereItsProductsMakeThem) {
  const auto squares = [](const Tensor& a) { return sum(matmul(matmul(a, a.T()), a) * 1e-9); };
  const Tensor large = filled(300);
  EXPECT_FALSE(find_non_finite(squares)(large));
  const auto found = find_non_finite(squares, Precision::f16)(large);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operation, "matmul");
  EXPECT_NE(found->location.find("precision_test.cpp:"), std::string::npos) << found->location;
}

INSTANTIATE_TEST_SUITE_P(Devices, PrecisionTest, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
