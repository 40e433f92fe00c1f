// The error bounds hold for an implementation that rounds each op to its type, and catch one that is wrong.
#include <gtest/gtest.h>

#include <tilewright/tile/builder.h>
#include <tilewright/tile/text.h>
#include <tilewright/tile/verify.h>
#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/reference/interpreter.h"
#include "support/parity.h"
#include "support/random_kernel.h"
#include "support/sample_kernels.h"

namespace tilewright::reference {
namespace {

using test::check_parity;
using test::HostView;
using test::ParityReport;
using tile::Block;
using tile::Builder;
using tile::Kernel;
using tile::Monoid;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::Value;
using tile::View;

// Puts a cast to f32 behind each f32 result: the kernel then computes as f32 hardware does.
void round_results(Kernel& kernel, Block& block) {
  std::vector<Op> ops;
  for (Op& op : block.ops) {
    for (Block& inner : op.blocks) round_results(kernel, inner);
    const bool computes = op.kind == OpKind::apply || op.kind == OpKind::reduce || op.kind == OpKind::scan ||
                          op.kind == OpKind::dot;
    const bool rounds = computes && kernel.type(op.results[0]).dtype == DType::f32;
    ops.push_back(std::move(op));
    if (!rounds) continue;
    const tile::ValueId rounded = ops.back().results[0],
                        exact = static_cast<tile::ValueId>(kernel.values.size());
    kernel.values.push_back({kernel.type(rounded), ""});
    ops.back().results[0] = exact;
    ops.push_back({.kind = OpKind::cast, .operands = {exact}, .results = {rounded}});
  }
  block.ops = std::move(ops);
}

Status run_on_host(const Kernel& kernel, const std::vector<HostView>& views,
                   const std::vector<std::int64_t>& scalars) {
  std::vector<ViewBinding> bindings;
  bindings.reserve(views.size());
  for (const HostView& v : views)
    bindings.push_back({.data = v.data + v.origin_bytes,
                        .extent_bytes = v.bytes - v.origin_bytes,
                        .before_bytes = v.origin_bytes});
  return run(kernel, bindings, scalars);
}

Status run_rounded(const Kernel& kernel, const std::vector<HostView>& views,
                   const std::vector<std::int64_t>& scalars) {
  Kernel rounded = kernel;
  round_results(rounded, rounded.body);
  if (auto problem = verify(rounded)) return failure(Failure::Kind::invalid, *problem);
  return run_on_host(rounded, views, scalars);
}

TEST(ErrorBounds, HoldForRandomKernelsRoundedAfterEachOp) {
  Index compared = 0, undecided = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const test::RandomKernel random = test::random_kernel(seed);
    const double odd_share = seed % 3 == 0 ? 0.02 : 0;
    const ParityReport report = check_parity(
        random.kernel,
        {.scalars = random.scalars, .seed = seed, .odd_share = odd_share, .undecided_limit = 1}, run_rounded);
    ASSERT_TRUE(report.ok()) << seed << ": " << report.message;
    compared += report.compared;
    undecided += report.undecided;
  }
  // The check means something only while most elements are decided.
  EXPECT_GT(compared, 4 * undecided) << compared << " " << undecided;
}

TEST(ErrorBounds, HoldForTheSamples) {
  const std::vector<Kernel> kernels{
      tile::samples::row_softmax(DType::bf16, 32, 100),
      tile::samples::row_softmax_looped(DType::f16, 7, 1000, 256),
      tile::samples::matmul_gelu(DType::bf16, {100, 70, 65, 32, 16, 32}),
      tile::samples::matmul_gelu(DType::f32, {100, 70, 65, 32, 16, 32}),
      tile::samples::attention(DType::bf16,
                               {.heads = 2, .tokens = 50, .width = 16, .block_m = 16, .block_n = 8}),
      tile::samples::column_sums_atomic(1000, 33, 64, 16),
      tile::samples::column_sums_partial(1000, 33, 64, 16)};
  double worst = 0;
  for (const Kernel& kernel : kernels) {
    const ParityReport report = check_parity(kernel, {.odd_share = 0}, run_rounded);
    EXPECT_TRUE(report.ok()) << report.message;
    EXPECT_EQ(report.undecided, 0) << kernel.name;
    worst = std::max(worst, report.worst);
  }
  EXPECT_GT(worst, 0.02);  // the bounds are of the size of the errors
}

// A backend that runs another kernel than it was given.
ParityReport parity_with(const Kernel& kernel, const Kernel& other) {
  return check_parity(kernel, {.odd_share = 0}, [&](const Kernel&, const auto& views, const auto& scalars) {
    return run_on_host(other, views, scalars);
  });
}

Kernel pointwise(const std::function<Value(Builder&, Value)>& f, Index size = 64) {
  Builder k("k");
  const View x = k.view("x", DType::f32, {64}), y = k.view("y", DType::f32, {64});
  k.store(y, {0}, f(k, k.load(x, {0}, {.shape = {size}})));
  return k.finish({{{1, 1}}});
}

TEST(Parity, CatchesAResultThatIsOffByAFewUlps) {
  const Kernel right = pointwise([](Builder&, Value v) { return exp(v); });
  EXPECT_TRUE(parity_with(right, pointwise([](Builder&, Value v) { return exp(v) * (1 + 0x1p-23); })).ok());
  EXPECT_FALSE(
      parity_with(right, pointwise([](Builder&, Value v) { return exp(v) * (1 + 5 * 0x1p-23); })).ok());
}

TEST(Parity, CatchesMissingAndStrayWrites) {
  const auto id = [](Builder&, Value v) { return v; };
  EXPECT_NE(
      parity_with(pointwise(id), pointwise(id, 63)).message.find("element 63: backend nothing (poison)"),
      std::string::npos);
  EXPECT_NE(parity_with(pointwise(id, 63), pointwise(id)).message.find("element 63: the backend wrote"),
            std::string::npos);
}

TEST(Parity, CatchesWritesOutsideTheView) {
  const Kernel kernel = pointwise([](Builder&, Value v) { return v; });
  const ParityReport report =
      check_parity(kernel, {}, [](const Kernel& k, const std::vector<HostView>& views, const auto& scalars) {
        views[1].data[views[1].origin_bytes + 64 * 4] = 0;
        return run_on_host(k, views, scalars);
      });
  EXPECT_NE(report.message.find("view %y: the backend wrote outside the view"), std::string::npos);
}

TEST(Parity, ReportsKernelsThatBreakTheirPromises) {
  Builder k("k");
  const Value n = k.scalar("n");
  const View x = k.view("x", DType::f32, {n});
  k.load(x, {n - 1}, {.shape = {2}});
  const ParityReport report = check_parity(k.finish({{{1, 1}}}), {.scalars = {4}}, run_on_host);
  EXPECT_NE(report.message.find("breaks its own promises"), std::string::npos);
}

double bound_of(const std::function<Value(Builder&, Value)>& f, float x) {
  Builder k("k");
  const View vx = k.view("x", DType::f32, {1}, {.align_bytes = 4}),
             vy = k.view("y", DType::f64, {1}, {.align_bytes = 8});
  const Value v = f(k, k.load(vx, {0}, {.shape = {1}}));
  k.store(vy, {0}, k.cast(v, DType::f64));
  double y = 0;
  const auto bounds = run_with_bounds(k.finish({{{1, 1}}}),
                                      {{.data = &x, .extent_bytes = 4}, {.data = &y, .extent_bytes = 8}}, {});
  return bounds->views[1][0];
}

// What may be stored of v in `stored`, read as f64 behind it.
double bound_stored(const std::function<Value(Builder&, Value)>& f, float x, DType stored) {
  Builder k("k");
  const View vx = k.view("x", DType::f32, {1}, {.align_bytes = 4}),
             vy = k.view("y", stored, {1}, {.align_bytes = 1});
  k.store(vy, {0}, k.cast(f(k, k.load(vx, {0}, {.shape = {1}})), stored));
  double y = 0;
  const auto bytes = static_cast<Index>(size_bytes(stored));
  const auto bounds = run_with_bounds(
      k.finish({{{1, 1}}}), {{.data = &x, .extent_bytes = 4}, {.data = &y, .extent_bytes = bytes}}, {});
  return bounds->views[1][0];
}

// A sine of 2^-11 below the middle of two 8-bit floats may be stored as either, unless it was used exactly.
TEST(ErrorBounds, HoldWhatShortFormsMayErrBy) {
  const auto plain = [](Builder&, Value v) { return sin(v); };
  const float below_the_middle = std::asin(0.9375F * (1 - 0x1p-11F)), far_below = std::asin(0.93F);
  EXPECT_GE(bound_stored(plain, below_the_middle, DType::f8e5m2), 0.125);
  EXPECT_EQ(bound_stored(plain, far_below, DType::f8e5m2), 0);
  const auto summed = [](Builder&, Value v) { return sin(v) + 0; };
  EXPECT_EQ(bound_stored(summed, below_the_middle, DType::f8e5m2), 0) << "a sum on the way";
  const auto exponential = [](Builder&, Value v) { return exp(v); };
  const float ln = std::log(0.9375F);
  EXPECT_GE(bound_stored(exponential, ln - 0x1p-18F, DType::f8e5m2), 0.125);
  EXPECT_EQ(bound_stored(exponential, ln - 0x1p-14F, DType::f8e5m2), 0) << "it has no coarse form";
  EXPECT_LT(bound_of(plain, below_the_middle), 0x1p-21) << "f64 is stored";
}

TEST(ErrorBounds, AreZeroWhereNothingRounds) {
  EXPECT_EQ(bound_of([](Builder&, Value v) { return v * 2 + 1; }, 3), 0);
  EXPECT_EQ(bound_of([](Builder& k, Value v) { return -k.cast(k.cast(v, DType::bf16), DType::f32); }, 0.1f),
            0);
}

TEST(ErrorBounds, FollowTheConditionOfWhatComesAfter) {
  // exp is off by 2 ulps of 1; dividing by 1e-3 turns that into as much of 1000.
  const double plain = bound_of([](Builder&, Value v) { return exp(v); }, 0);
  EXPECT_NEAR(plain, 2 * 0x1p-23, 1e-8);
  EXPECT_NEAR(bound_of([](Builder&, Value v) { return exp(v) / 0.0009765625; }, 0), 1024 * (plain + 0x1p-23),
              1e-3);
  // Cancellation leaves the absolute error.
  EXPECT_GE(bound_of([](Builder&, Value v) { return exp(v) - 1; }, 1e-6f), plain / 2);
}

TEST(ErrorBounds, AreInfiniteWhereRoundingDecides) {
  const auto near_half = [](Builder&, Value v) { return round(exp(v) - 0.5); };  // 0.5 ± ε
  EXPECT_EQ(bound_of(near_half, 0), 1);
  const auto as_int = [](Builder& k, Value v) { return k.cast(k.cast(exp(v), DType::i32), DType::f32); };
  EXPECT_TRUE(std::isinf(bound_of(as_int, 0)));
  EXPECT_EQ(bound_of(as_int, 0.1f), 0);
  // A close call between 3 and 4.
  const auto choose = [](Builder& k, Value v) { return where(exp(v) > 1, k.literal(DType::f32, 3, {1}), 4); };
  EXPECT_NEAR(bound_of(choose, 0), 1, 1e-6);
  EXPECT_EQ(bound_of(choose, 1), 0);
  // The largest f32 times about 1 overflows perhaps; exp(100) surely does.
  EXPECT_TRUE(std::isinf(bound_of([](Builder&, Value v) { return max_finite(DType::f32) * exp(v); }, 0)));
  EXPECT_LT(bound_of([](Builder&, Value v) { return 1 / exp(v); }, 100), 2e-45);
}

TEST(ErrorBounds, GrowWithTheLengthOfASum) {
  const auto sum = [](Index n) {
    Builder k("k");
    const View x = k.view("x", DType::f32, {n}, {.align_bytes = 4}),
               y = k.view("y", DType::f32, {1}, {.align_bytes = 4});
    k.store(y, {0}, k.reduce(Monoid::sum, k.load(x, {0}, {.shape = {n}}), 0));
    std::vector<float> in(static_cast<std::size_t>(n), 0.1f);
    float out = 0;
    const auto bounds =
        run_with_bounds(k.finish({{{1, 1}}}),
                        {{.data = in.data(), .extent_bytes = n * 4}, {.data = &out, .extent_bytes = 4}}, {});
    return bounds->views[1][0];
  };
  EXPECT_EQ(sum(1), 0);
  EXPECT_NEAR(sum(1000), 999 * 0x1p-24 * 100, 1e-5);
}

// inf + big + big may become -inf + inf in another order.
TEST(ErrorBounds, AreInfiniteWhereSomeOrderOverflowsToTheOtherInfinity) {
  const auto sum = [](float most) {
    Builder k("k");
    const View x = k.view("x", DType::f32, {4}, {.align_bytes = 4}),
               y = k.view("y", DType::f32, {1}, {.align_bytes = 4});
    k.store(y, {0}, k.reduce(Monoid::sum, k.load(x, {0}, {.shape = {4}}), 0));
    std::vector<float> in = {-most, std::numeric_limits<float>::infinity(), -most, 1};
    float out = 0;
    const auto bounds =
        run_with_bounds(k.finish({{{1, 1}}}),
                        {{.data = in.data(), .extent_bytes = 16}, {.data = &out, .extent_bytes = 4}}, {});
    return bounds->views[1][0];
  };
  EXPECT_EQ(sum(1), 0);
  EXPECT_EQ(sum(3e38f), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tilewright::reference
