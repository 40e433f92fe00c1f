// Sums of millions of equal terms, whose roundings all go one way: they keep their digits in every layout.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {
namespace {

constexpr Index kLength = 3'000'000;
// What f32 has for 0.1.
constexpr double kEach = static_cast<double>(0.1f);
// What comes before an element of a running sum is exact but for a few roundings: as PyTorch's 3e-7.
constexpr double kRunningError = 1e-6;

// How far off equal terms are, relative to their sum, after up to `most` additions one after another in f32.
double worst_of_chain(float each, int most) {
  double worst = 0;
  float sum = 0;
  for (int i = 1; i <= most; ++i) {
    sum += each;
    worst = std::max(worst, std::abs(static_cast<double>(sum) / (static_cast<double>(each) * i) - 1));
  }
  return worst;
}

// The largest error of a running sum of equal numbers, relative to it.
double worst_of_running(const std::vector<float>& got) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = kEach * static_cast<double>(i + 1);
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want) / want);
  }
  return worst;
}

// Each element of `got` against one number.
void expect_all(const Tensor& got, double want, double most, const std::string& what) {
  for (float each : cast(got, DType::f32).to_vector<float>()) EXPECT_NEAR(each / want, 1, most) << what;
}

struct Layout {
  const char* name;
  Shape shape;
  std::vector<Index> axes;
};

std::vector<Layout> layouts() {
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

void expect_digits(Context& ctx, double most) {
  for (const Layout& l : layouts()) {
    const Tensor x = ctx.full(l.shape, 0.1);
    double terms = 1;
    for (Index axis : l.axes) terms *= static_cast<double>(l.shape[static_cast<int>(axis)]);
    const auto total = [&](const Tensor& t) { return sum(t, l.axes); };
    expect_all(total(x), kEach * terms, most, std::string("sum, ") + l.name);
    expect_all(compile(total)(x), kEach * terms, most, std::string("compiled sum, ") + l.name);
    expect_all(mean(x, l.axes), kEach, most, std::string("mean, ") + l.name);
  }
  const Tensor x = ctx.full({kLength}, 0.1);
  expect_all(logsumexp(x), std::log(static_cast<double>(kLength)) + kEach, most, "logsumexp");
  // Products add up a block of the depth in f32, one after another, and blocks in f64.
  const double most_of_products = worst_of_chain(0.01f, 4112 / 4);  // of dot_few, by the fewest lanes
  expect_all(matmul(x, x), kEach * kEach * static_cast<double>(kLength), most_of_products, "dot product");
  for (Index columns : {1, 3, 64})
    for (Index rows : {1, 8}) {
      constexpr Index kDepth = 200'000;
      const Tensor a = ctx.full({rows, kDepth}, 0.1), b = ctx.full({kDepth, columns}, 0.1);
      expect_all(matmul(a, b), kEach * kEach * kDepth, most_of_products, "product");
    }
  // The depth across in memory, as in the gradient of weights; 131,072 is 32 of the longest blocks.
  const auto turned = [](const Tensor& x, const Tensor& y) { return matmul(swap_axes(x, 0, 1), y); };
  for (Index depth : {131'072, 200'000})
    for (Index rows : {4, 17}) {
      const Tensor a = ctx.full({depth, rows}, 0.1), b = ctx.full({depth, 1}, 0.1);
      expect_all(compile(turned)(a, b), kEach * kEach * static_cast<double>(depth), most_of_products,
                 "turned product");
    }
  expect_all(mean(ctx.full({200'000}, 1.0, DType::f16)), 1, most, "mean of f16");
  // 0.1 above and below a mean.
  std::vector<float> both(kLength);
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = i % 2 == 0 ? 0.1f : -0.1f;
  expect_all(var(ctx.from(both, {kLength})), kEach * kEach, most, "variance");
  expect_all(var(ctx.from(both, {kLength / 2, 2}), {0}) + 1, 1, most, "variance of columns");
  expect_all(var(ctx.from(both, {2, kLength / 2}), {1}), kEach * kEach, most, "variance of rows");
  // The gradient of a bias is a sum over rows; that of a number a sum of all.
  const auto loss = [](const Tensor& bias, const Tensor& t) { return sum((t + bias) * 0.1f); };
  for (const Shape& shape : {Shape{3}, Shape{1}, Shape{600}}) {
    const Index columns = std::max<Index>(shape[0], 3);
    const Tensor rows = ctx.full({kLength / columns, columns}, 0.1), bias = ctx.zeros(shape);
    const double terms = static_cast<double>(rows.shape().size()) / static_cast<double>(shape[0]);
    const auto slope = [&](const Tensor& b) {
      return value_and_grad([&](const Tensor& c) { return loss(c, rows); })({b})[1];
    };
    expect_all(slope(bias), kEach * terms, most, "gradient of a bias");
  }
}

// A chain of 64 terms in f32 at most, whose sums are added up likewise: in f64, or in a chain of 64 again.
const double kMostError = 2 * worst_of_chain(0.1f, 64);

TEST(LongSums, KeepTheirDigits) {
  for (const char* isa : {"avx512", "avx2", "baseline"}) {
    SCOPED_TRACE(isa);
    std::unique_ptr<Context> ctx;
    try {
      ctx = std::make_unique<Context>(ContextOptions{.cache_directory = "", .threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // an instruction set that this machine lacks
    }
    expect_digits(*ctx, kMostError);
  }
}

// A tile of a user's kernel is as long as the user likes.
TEST(LongSums, KeepTheirDigitsInKernelsByHand) {
  constexpr Index kRow = 1 << 17, kRows = 5000, kColumns = 48;
  tile::Builder k("by_hand");
  const auto x = k.view("x", DType::f32, {kRow}), y = k.view("y", DType::f32, {kRows, kColumns});
  const auto along = k.view("along", DType::f32, {1}), across = k.view("across", DType::f32, {kColumns});
  k.store(along, {Index{0}}, k.reduce(tile::Monoid::sum, k.load(x, {Index{0}}, {.shape = {kRow}}), 0));
  k.store(across, {Index{0}},
          k.reduce(tile::Monoid::sum, k.load(y, {Index{0}, Index{0}}, {.shape = {kRows, kColumns}}), 0));
  TileFunction f(k.finish({{{1, 1}}}));
  Context ctx({.cache_directory = ""});
  const std::vector<Tensor> got = {ctx.empty({1}), ctx.empty({kColumns})};
  f({ctx.full({kRow}, 0.1), ctx.full({kRows, kColumns}, 0.1), into(got[0]), into(got[1])});
  expect_all(got[0], kEach * kRow, kMostError, "along a row");
  expect_all(got[1], kEach * kRows, kMostError, "along columns");
}

TEST(LongSums, OfDynamicSizesKeepTheirDigits) {
  Context ctx({.cache_directory = ""});
  CompileOptions options;
  options.dynamic = {{0, 0}};
  const auto total = compile([](const Tensor& x) { return sum(x); }, options);
  for (Index n : {kLength, kLength - 1, Index{1'000'003}})
    expect_all(total(ctx.full({n}, 0.1)), kEach * static_cast<double>(n), kMostError, "dynamic");
}

TEST(RunningSums, KeepTheirDigits) {
  for (const char* isa : {"avx512", "avx2", "baseline"}) {
    SCOPED_TRACE(isa);
    std::unique_ptr<Context> ctx;
    try {
      ctx = std::make_unique<Context>(ContextOptions{.cache_directory = "", .threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // an instruction set that this machine lacks
    }
    for (Index length : {kLength, Index{100}, Index{1}, Index{1003}}) {
      const Tensor x = ctx->full({length}, 0.1);
      EXPECT_LT(worst_of_running(cumsum(x, 0).to_vector<float>()), kRunningError);
      // The gradient is a running sum from the end.
      const auto slopes = value_and_grad([](const Tensor& t) { return sum(cumsum(t, 0) * 0.1); })({x});
      std::vector<float> gradient = slopes[1].to_vector<float>();
      std::reverse(gradient.begin(), gradient.end());
      EXPECT_LT(worst_of_running(gradient), kRunningError) << "of the gradient";
    }
    const Tensor columns = cumsum(ctx->full({kLength / 3, 3}, 0.1), 0);
    EXPECT_LT(worst_of_running(select(columns, 1, 1).to_vector<float>()), kRunningError);
  }
}

}  // namespace
}  // namespace tilewright
