// Dynamic dimensions: the values of every size, and kernels that are compiled for the first size only.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/state.h"

namespace tilewright {
namespace {

using test::expect_says;

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Case {
  const char* name;
  Function function;
  std::vector<Shape> shapes;  // -1: the dynamic size
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"pointwise",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {where(x[0] > 0.f, x[0], exp(x[0]) - 1.f)};
       },
       {{-1, 24}}},
      {"softmax of rows",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {softmax(x[0])}; },
       {{-1, 96}}},
      {"softmax of longer rows",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {softmax(x[0])}; },
       {{5, -1}}},
      {"mean of everything",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {mean(x[0] * x[0])}; },
       {{-1, 48}}},
      {"two arguments of one size",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
         return {sum(x[0] * x[1], {1}), x[0] + x[1]};
       },
       {{-1, 32}, {-1, 1}}},
      {"a matrix product",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {matmul(x[0], x[1])}; },
       {{-1, 16}, {16, 40}}},
      {"a transpose",
       [](const std::vector<Tensor>& x) -> std::vector<Tensor> { return {transpose(x[0], {1, 0}) * 2.f}; },
       {{-1, 70}}},
  };
  return all;
}

std::vector<DynamicDim> dynamic_of(const Case& c) {
  std::vector<DynamicDim> out;
  for (std::size_t a = 0; a < c.shapes.size(); ++a)
    for (int axis = 0; axis < c.shapes[a].rank(); ++axis)
      if (c.shapes[a][axis] == -1) out.push_back({static_cast<int>(a), axis});
  return out;
}

std::vector<Tensor> arguments(Context& ctx, const Case& c, Index size) {
  std::vector<Tensor> out;
  for (const Shape& shape : c.shapes) {
    std::vector<Index> extents = shape.extents();
    for (Index& e : extents)
      if (e == -1) e = size;
    out.push_back(ctx.randn(Shape(extents)));
  }
  return out;
}

class Dynamic : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
};

TEST_P(Dynamic, EverySizeHasTheValuesOfEagerExecution) {
  for (const Case& c : cases()) {
    const auto compiled = compile(c.function, {.dynamic = dynamic_of(c)});
    for (Index size : {40, 41, 7, 1, 100, 300, 513, 1030, 0}) {
      if (size == 0 && std::string(c.name).find("mean") != std::string::npos) continue;  // 0 / 0
      const std::vector<Tensor> x = arguments(ctx_, c, size);
      const std::vector<Tensor> got = compiled(x), want = c.function(x);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t o = 0; o < got.size(); ++o) {
        ASSERT_EQ(got[o].shape(), want[o].shape()) << c.name << " at " << size;
        const std::vector<float> a = got[o].to_vector<float>(), b = want[o].to_vector<float>();
        for (std::size_t i = 0; i < a.size(); ++i)
          ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::fabs(b[i])))
              << c.name << " at " << size << ", element " << i;
      }
    }
  }
}

TEST_P(Dynamic, AnotherSizeCompilesNothing) {
  for (const Case& c : cases()) {
    // How many partial sums there are depends on the size, and with it the kernel that adds them up.
    if (std::string(c.name).find("mean") != std::string::npos) continue;
    const auto compiled = compile(c.function, {.dynamic = dynamic_of(c)});
    std::set<std::string> sources;
    for (Index size : {1032, 2056, 1544, 4104}) {
      compiled(arguments(ctx_, c, size));
      const SpecialisationReport newest = compiled.report().front();
      EXPECT_NE(newest.dynamic.find("kernels take "), std::string::npos) << c.name << ": " << newest.dynamic;
      for (const KernelReport& k : newest.kernels) sources.insert(k.source);
    }
    EXPECT_EQ(sources.size(), compiled.report().front().kernels.size()) << c.name;
  }
}

// Both lengths change with each token, and every result is the next call's argument.
TEST_P(Dynamic, ACacheThatGrowsByOneCompilesNothing) {
  const auto step = [](const std::vector<Tensor>& a) -> std::vector<Tensor> {
    const Tensor cache = concat({a[1], a[2]}, 1);
    return {matmul(softmax(matmul(a[0], transpose(cache, {0, 2, 1})) * 0.25f), cache), cache};
  };
  const auto compiled = compile(step, {.dynamic = {{1, 1}}});
  const auto builds = [&] { return ctx_.state()->device(GetParam()).store.builds(); };
  const Tensor query = ctx_.randn({2, 1, 16}), row = ctx_.randn({2, 1, 16});
  Tensor cache = ctx_.randn({2, 600, 16});
  std::size_t after_one = 0;
  for (int token = 0; token < 5; ++token) {
    const std::vector<Tensor> got = compiled({query, cache, row});
    if (token == 0) after_one = builds();
    EXPECT_EQ(builds(), after_one) << "token " << token << ": " << compiled.report().front().dynamic;
    const std::size_t before_eager = builds();
    const std::vector<float> y = got[0].to_vector<float>(),
                             want = step({query, cache, row})[0].to_vector<float>();
    after_one += builds() - before_eager;
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want[i], 1e-5) << "token " << token;
    EXPECT_EQ(got[1].shape(), (Shape{2, 601 + token, 16}));
    cache = got[1];
  }
}

TEST_P(Dynamic, WhatCannotShareKernelsSaysWhy) {
  const auto compiled =
      compile([](const Tensor& x) { return matmul(x, transpose(x, {1, 0})); }, {.dynamic = {{0, 0}}});
  compiled(ctx_.randn({1, 8}));
  const std::string how = compiled.report().front().dynamic;
  EXPECT_FALSE(how.empty());
  EXPECT_NE(compiled.explain().find("dynamic dimensions: "), std::string::npos) << compiled.explain();
}

TEST(DynamicWords, SayWhatSizesShare) {
  Context ctx({.cache_directory = ""});
  const auto said = [&](const std::function<Tensor(const Tensor&)>& f) {
    const auto compiled = compile(f, {.dynamic = {{0, 0}}});
    for (const Index size : {5, 7}) compiled(ctx.randn({size, 8}));
    return compiled.report().front().dynamic;
  };
  EXPECT_EQ(said([](const Tensor& x) { return softmax(x, 1); }).find("kernels take 1 size as an argument"),
            0U);
  EXPECT_EQ(said([](const Tensor& x) {
              return cumsum(x, 0);
            }).find("kernels for these sizes alone: kernel cumsum_0: its code depends on the size: "),
            0U);
  EXPECT_NE(said([](const Tensor& x) {
              return x / static_cast<double>(x.size());
            }).find("asks for shape() or size()"),
            std::string::npos);
}

TEST_P(Dynamic, ADimensionThatIsNotThereIsRefused) {
  const auto compiled = compile([](const Tensor& x) { return exp(x); }, {.dynamic = {{0, 2}}});
  expect_says([&] { compiled(ctx_.randn({2, 3})); },
              {"dynamic axis 2 of argument 0 is out of range for f32[2,3]", "dynamic_test.cpp:"});
  const auto below = compile([](const Tensor& x) { return exp(x); }, {.dynamic = {{0, -3}}});
  expect_says([&] { below(ctx_.randn({2, 3})); },
              {"dynamic axis -3 of argument 0 is out of range for f32[2,3]"});
  const auto twice = compile([](const Tensor& x) { return exp(x); }, {.dynamic = {{0, 0}, {0, 1}, {0, 0}}});
  expect_says([&] { twice(ctx_.randn({2, 3})); }, {"axis 0 of argument 0 is dynamic twice"});
  const auto again = compile([](const Tensor& x) { return exp(x); }, {.dynamic = {{0, 1}, {0, -1}}});
  expect_says([&] { again(ctx_.randn({2, 3})); }, {"axis 1 of argument 0 is dynamic twice"});
}

// The last axis of whatever rank a call has.
TEST_P(Dynamic, ANegativeAxisCountsFromTheLast) {
  const auto compiled = compile([](const Tensor& x) { return x * 2.f; }, {.dynamic = {{0, -1}}});
  for (const Index size : {5, 8, 13, 21, 34}) {
    const Tensor x = ctx_.randn({4, size}), y = ctx_.randn({4, 2, size});
    EXPECT_EQ(compiled(x).to_vector<float>(), (x * 2.f).to_vector<float>()) << size;
    EXPECT_EQ(compiled(y).to_vector<float>(), (y * 2.f).to_vector<float>()) << size;
  }
  for (const char* range : {"for f32[4,n0]; n0 from ", "for f32[4,2,n0]; n0 from "})
    EXPECT_NE(compiled.explain().find(range), std::string::npos) << range << "\n" << compiled.explain();
}

INSTANTIATE_TEST_SUITE_P(Devices, Dynamic, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
