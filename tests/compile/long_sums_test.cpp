// Sums of millions of equal terms keep their digits in every layout.
#include "support/long_sums.h"
#include "support/kernel_folder.h"

#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace tilewright {
namespace {

using test::kEach;
using test::kLength;
using test::kRunningError;
using test::worst_of_running;

void expect_all(const Tensor& got, double want, double most, const std::string& what) {
  EXPECT_LE(test::worst_of(got, want), most) << what;
}

// A chain of 64 terms in f32 at most, whose sums are added up likewise: in f64, or in a chain of 64 again.
const double kMostError = 2 * test::worst_of_chain(0.1f, 64);

TEST(LongSums, KeepTheirDigits) {
  for (const char* isa : {"amx", "avx512", "avx2", "baseline"}) {
    SCOPED_TRACE(isa);
    std::unique_ptr<Context> ctx;
    try {
      ctx = std::make_unique<Context>(
          ContextOptions{.cache_directory = test::kernel_folder(), .threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // an instruction set that this machine lacks
    }
    test::long_sums(*ctx, kMostError,
                    [](const test::LongSum& sum) { EXPECT_LE(sum.error, sum.most) << sum.what; });
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
  Context ctx({.cache_directory = test::kernel_folder()});
  const std::vector<Tensor> got = {ctx.empty({1}), ctx.empty({kColumns})};
  f({ctx.full({kRow}, 0.1), ctx.full({kRows, kColumns}, 0.1), into(got[0]), into(got[1])});
  expect_all(got[0], kEach * kRow, kMostError, "along a row");
  expect_all(got[1], kEach * kRows, kMostError, "along columns");
}

TEST(LongSums, OfDynamicSizesKeepTheirDigits) {
  Context ctx({.cache_directory = test::kernel_folder()});
  CompileOptions options;
  options.dynamic = {{0, 0}};
  const auto total = compile([](const Tensor& x) { return sum(x); }, options);
  for (Index n : {kLength, kLength - 1, Index{1'000'003}})
    expect_all(total(ctx.full({n}, 0.1)), kEach * static_cast<double>(n), kMostError, "dynamic");
}

TEST(RunningSums, KeepTheirDigits) {
  for (const char* isa : {"amx", "avx512", "avx2", "baseline"}) {
    SCOPED_TRACE(isa);
    std::unique_ptr<Context> ctx;
    try {
      ctx = std::make_unique<Context>(
          ContextOptions{.cache_directory = test::kernel_folder(), .threads = 1, .isa = isa});
    } catch (const Error&) {
      continue;  // an instruction set that this machine lacks
    }
    for (Index length : {kLength, Index{100}, Index{1}, Index{1003}}) {
      const Tensor x = ctx->full({length}, 0.1);
      EXPECT_LT(worst_of_running(cumsum(x, 0).to_vector<float>()), kRunningError);
      // The gradient is a running sum from the end.
      const auto slopes = value_and_grad([](const Tensor& t) { return sum(cumsum(t, 0) * 0.1); })(x);
      std::vector<float> gradient = slopes.second.to_vector<float>();
      std::reverse(gradient.begin(), gradient.end());
      EXPECT_LT(worst_of_running(gradient), kRunningError) << "of the gradient";
    }
    const Tensor columns = cumsum(ctx->full({kLength / 3, 3}, 0.1), 0);
    EXPECT_LT(worst_of_running(select(columns, 1, 1).to_vector<float>()), kRunningError);
  }
}

// Few columns' sums are shared among programs; what is made of them is stored along the summed axis.
TEST(LongSums, AreBroadcastBackOverWhatWasSummed) {
  Context ctx({.cache_directory = test::kernel_folder()});
  const auto expect_gradient = [&](const Shape& shape, const Axes& axes) {
    SCOPED_TRACE(to_string(shape));
    const auto squares = [&](const Tensor& x) { return mean(square(sum(x, axes))); };
    const auto [value, gradient] = value_and_grad(squares)(ctx.ones(shape));
    // n sums of k ones each: their mean square is k^2, its derivative by each one 2 k / n.
    const double k =
        static_cast<double>(shape.size()) / static_cast<double>(sum(ctx.ones(shape), axes).size());
    const double n = static_cast<double>(shape.size()) / k;
    EXPECT_EQ(value.item(), k * k);
    EXPECT_NEAR(min(gradient).item(), 2 * k / n, 2 * k / n * 0x1p-22);
    EXPECT_NEAR(max(gradient).item(), 2 * k / n, 2 * k / n * 0x1p-22);
  };
  expect_gradient({64, 1024}, {0});
  expect_gradient({4096, 64}, {0});
  expect_gradient({4, 64, 1024}, {1});
  expect_gradient({64, 64, 64}, {0, 2});
}

}  // namespace
}  // namespace tilewright
