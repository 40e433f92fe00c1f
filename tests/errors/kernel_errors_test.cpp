// Mistakes in calls of hand-written kernels and of functions that were moved from.
#include <tilewright/tile/schedule.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using test::message_of;

// y = scale · x, of n elements.
TileFunction scale_function() {
  tile::Builder k("scaled");
  const auto n = k.scalar("n");
  const auto scale = k.scalar("scale", DType::f32);
  const auto x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  const auto start = k.program_id(0) * 16;
  k.store(y, {start}, k.load(x, {start}, {.shape = {16}, .fill = 0.0}) * scale, {.bounded = true});
  return TileFunction(k.finish({{{n, 16}}}));
}

class KernelErrors : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  const std::string here_ = "kernel_errors_test.cpp:";
};

TEST_P(KernelErrors, ATileFunctionThatWasMovedFrom) {
  TileFunction f = scale_function();
  const TileFunction taken(std::move(f));
  const Tensor x = ctx_.ones({20});
  const std::string why = "this TileFunction was never given a value, or was moved from";
  // NOLINTBEGIN(bugprone-use-after-move): what is said of it
  expect_says([&] { f({x, out({20})}, {20, 2}); }, {why, here_});
  expect_says([&] { (void)f.kernel(); }, {why, here_});
  expect_says([&] { (void)f.source(x); }, {why, here_});
  expect_says([&] { f.use({}); }, {why, here_});
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(taken({x, out({20})}, {20, 2}).at(0).to_vector<float>(), std::vector<float>(20, 2.f));
  EXPECT_EQ(taken.kernel().name, "scaled");
}

// y = step · 0, 1, …, in 3 rows of 8, and the numbers of the rows: no tensor is read.
TileFunction counting_function() {
  tile::Builder k("counting");
  const auto step = k.scalar("step", DType::f32);
  const auto y = k.view("y", DType::f32, {3, 8}), rows = k.view("rows", DType::i64, {3});
  const tile::Value row = k.program_id(0);
  k.store(y, {row, 0}, k.cast(row * 8 + k.arange(8), DType::f32) * step);
  k.store(rows, {row}, k.broadcast(row, {1}));
  return TileFunction(k.finish({{{3, 1}}}));
}

TEST_P(KernelErrors, AKernelWithoutInputsRunsOnTheContextThatIsGiven) {
  const TileFunction counting = counting_function();
  const std::vector<TileArg> views = {out({3, 8}), out({3}, DType::i64)};
  expect_says(
      [&] { counting(views, {0.5}); },
      {"kernel counting: no tensor among its views says where it runs: give a Context in front", here_});
  const std::vector<Tensor> made = counting(ctx_, views, {0.5});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].device(), ctx_.ones({1}).device());
  EXPECT_EQ(made[0].to_vector<float>(), (ctx_.arange(24, DType::f32) * 0.5f).to_vector<float>());
  EXPECT_EQ(made[1].to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2}));
  expect_says([&] { counting(ctx_, {out({3, 7}), views[1]}, {0.5}); },
              {"view y reaches elements 0 to 23", here_});
  // Inside compile() it is a graph break like any other kernel.
  double step = 1;
  const auto f = compile([&](const Tensor& x) { return x + counting(ctx_, views, {step})[0]; });
  const Tensor zeros = ctx_.zeros({3, 8});
  EXPECT_EQ(f(zeros).to_vector<float>(), ctx_.arange(24, DType::f32).to_vector<float>());
  step = 2;
  EXPECT_EQ(f(zeros).to_vector<float>(), (ctx_.arange(24, DType::f32) * 2.f).to_vector<float>());
  EXPECT_NE(f.explain().find("graph break: kernel counting"), std::string::npos) << f.explain();
  // A constant of what is differentiated.
  const auto g = grad([&](const Tensor& x) { return sum(x * counting(ctx_, views, {1})[0]); });
  EXPECT_EQ(g(zeros).to_vector<float>(), ctx_.arange(24, DType::f32).to_vector<float>());
}

TEST_P(KernelErrors, TensorsOfAnotherContextThanTheOneGiven) {
  const TileFunction f = scale_function();
  Context other({.device = GetParam(), .cache_directory = ""});
  const Tensor x = ctx_.ones({20});
  EXPECT_EQ(f(ctx_, {x, out({20})}, {20, 2}).at(0).to_vector<float>(), std::vector<float>(20, 2.f));
  expect_says([&] { f(other, {x, out({20})}, {20, 2}); }, {"of another Context than the one given", here_});
}

TEST_P(KernelErrors, AKernelThatIsNone) {
  expect_says([] { TileFunction(tile::Kernel{}); }, {"TileFunction of kernel \"\"", here_});
  tile::Kernel broken = scale_function().kernel();
  broken.values.clear();
  expect_says([&] { TileFunction{broken}; }, {"TileFunction of kernel \"scaled\"", here_});
}

TEST_P(KernelErrors, SourceOfATensorWithoutAValue) {
  const TileFunction f = scale_function();
  expect_says([&] { (void)f.source(Tensor()); }, {"source", "never given a value", here_});
}

TEST_P(KernelErrors, ScalarsThatDoNotFit) {
  const TileFunction f = scale_function();
  const Tensor x = ctx_.ones({20});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double n : {2.5, nan, 1e30, 0x1p63})
    expect_says([&] { f({x, out({20})}, {n, 2}); }, {"kernel scaled: scalar n is an i64", here_});
  expect_says([&] { f({x, out({20})}, {20}); }, {"1 scalars given, it takes 2", here_});
  expect_says([&] { f({x, out({20})}, {-1, 2}); }, {"kernel scaled: dim 0 of view x", "extent -1", here_});
}

TEST_P(KernelErrors, OutputsOfNoPossibleShape) {
  const TileFunction f = scale_function();
  const Tensor x = ctx_.ones({20});
  const Index huge = Index{1} << 46;
  expect_says([&] { f({x, out({-1})}, {20, 2}); }, {"[-1]", here_});
  expect_says([&] { f({x, out({huge, huge})}, {20, 2}); }, {"too many elements", here_});
}

TEST_P(KernelErrors, StridesThatLeaveAllMemory) {
  tile::Builder k("far");
  const auto stride = k.scalar("stride");
  const auto size = tile::Builder::SizeArg(stride).dim;
  const auto x = k.view("x", DType::f32, {5, 4}, {.strides = {size, {1, -1}}});
  const auto y = k.view("y", DType::f32, {4});
  k.store(y, {0}, k.load(x, {1, 0}, {.shape = {4}}));
  const TileFunction f(k.finish({{{1, 1}}}));
  const Tensor t = ctx_.ones({20});
  EXPECT_EQ(f({t, out({4})}, {4}).at(0).to_vector<float>(), std::vector<float>(4, 1.f));
  expect_says([&] { f({t, out({4})}, {0x1p62}); }, {"dim 0 of view x", "leaves all memory", here_});
  expect_says([&] { f({t, out({4})}, {-0x1p62}); }, {"dim 0 of view x", "leaves all memory", here_});
}

TEST_P(KernelErrors, ACompiledFunctionThatWasMovedFrom) {
  auto f = compile([](const Tensor& t) { return t + t; });
  const auto taken = std::move(f);
  const Tensor x = ctx_.ones({3});
  const std::string why = "this compiled function was moved from";
  // NOLINTBEGIN(bugprone-use-after-move): what is said of it
  expect_says([&] { f(x); }, {why, here_});
  expect_says([&] { f(std::vector<Tensor>{x}); }, {why, here_});
  expect_says([&] { f.into({x}, {x}); }, {why, here_});
  expect_says([&] { (void)f.explain(); }, {why, here_});
  expect_says([&] { (void)f.report(); }, {why, here_});
  expect_says([&] { f.measure({x}); }, {why, here_});
  expect_says([&] { f.edit(0, "", {x}); }, {why, here_});
  auto slope = value_and_grad([](const Tensor& t) { return sum(t); });
  const auto kept = std::move(slope);
  expect_says([&] { slope(x); }, {"value_and_grad: this function was moved from", here_});
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(taken(x).to_vector<float>(), std::vector<float>(3, 2.f));
  EXPECT_EQ(kept(x).first.item(), 3);
}

TEST_P(KernelErrors, TensorsOfAFunctionThatHasReturned) {
  Tensor kept;
  const Tensor x = ctx_.ones({20});
  const auto keep = [&](const Tensor& t) { return kept = t + 1.f; };
  compile(keep)(x);
  const auto f = compile([](const Tensor& t) { return t + t; });
  const std::string why = "only what a function returns has a value outside";
  expect_says([&] { scale_function()({kept, out({20})}, {20, 2}); }, {why, here_});
  expect_says([&] { f.into({x}, {kept}); }, {why, here_});
  expect_says([&] { f.into({kept}, {x}); }, {why, here_});
}

TEST_P(KernelErrors, AFunctionThatIsEmpty) {
  const std::function<Tensor(const Tensor&)> none;
  const std::function<std::vector<Tensor>(const std::vector<Tensor>&)> none_of_many;
  Tensor (*const nowhere)(const Tensor&) = nullptr;
  const auto expect_both = [&](const auto& f) {
    expect_says([&] { (void)compile(f); }, {"compile: the function is empty", here_});
    expect_says([&] { (void)value_and_grad(f); }, {"value_and_grad: the function is empty", here_});
  };
  expect_both(none);
  expect_both(none_of_many);
  expect_both(nowhere);
}

INSTANTIATE_TEST_SUITE_P(Devices, KernelErrors, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
