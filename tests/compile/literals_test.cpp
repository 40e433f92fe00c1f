// Numbers that change from call to call: one kernel serves all of them, with the values and types that the
// constant would give.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tensor/state.h"

#include "support/kernel_folder.h"

namespace tilewright {
namespace {

class Literals : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu", .cache_directory = test::kernel_folder()}};
  std::size_t programs() { return ctx_.state()->device("cpu").graphs.size(); }
};

// The bits of eager results and of compiled ones, in which the literals are constants.
void expect_as_constants(const std::function<std::vector<Tensor>(const Tensor&)>& f, const Tensor& x,
                         double v) {
  const std::vector<Tensor> eager = f(x);
  const std::vector<Tensor> constant = compile([&](const Tensor& t) { return f(t); })(x);
  for (std::size_t k = 0; k < eager.size(); ++k) {
    const std::string what = fmt::format("function {} of {} and {}", k, name(x.dtype()), v);
    ASSERT_EQ(eager[k].dtype(), constant[k].dtype()) << what;
    ASSERT_EQ(eager[k].shape(), constant[k].shape()) << what;
    const std::vector<double> a = eager[k].to_vector<double>(), b = constant[k].to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool same = a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
      EXPECT_TRUE(same || (std::isnan(a[i]) && std::isnan(b[i])))
          << what << " at " << i << ": " << a[i] << " and " << b[i];
    }
  }
}

// PyTorch's rule, min(max(x, low), high).
TEST_F(Literals, BoundsThatCrossOrAreNotNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = ctx_.from(std::vector<double>{0, -0.0, 1, -1, inf, -inf}, {6}, DType::f64);
  const auto crossed = [](const Tensor& t) { return clamp(t, 2.5, 1.25); };
  for (const Tensor& y : {crossed(x), compile(crossed)(x)})
    EXPECT_EQ(y.to_vector<double>(), std::vector<double>(6, 1.25));
  for (const auto& [low, high] : {std::pair{nan, 1.25}, {-1.25, nan}}) {
    const auto f = [&](const Tensor& t) { return clamp(t, low, high); };
    for (const Tensor& y : {f(x), compile(f)(x)})
      for (const double v : y.to_vector<double>()) EXPECT_TRUE(std::isnan(v)) << low << " " << high;
  }
}

// Whole bounds stay exact beyond the integers that f32 holds, as in PyTorch.
TEST_F(Literals, BoundsOfIntegersKeepTheirType) {
  const Tensor x = ctx_.from(std::vector<std::int64_t>{-5, 16777217, 33554433}, {3});
  const auto f = [](const Tensor& t) { return clamp(t, 0, 33554432); };
  for (const Tensor& y : {f(x), compile(f)(x)}) {
    EXPECT_EQ(y.dtype(), DType::i64);
    EXPECT_EQ(y.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 16777217, 33554432}));
  }
  EXPECT_EQ(clamp(x, 0.5, 2).dtype(), DType::f32);
  EXPECT_EQ(clamp(ctx_.ones({2}, DType::i8), 0, 300).dtype(), DType::f32);
}

TEST_F(Literals, AreTheConstantsTheyStandFor) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::i64,
                            DType::i32, DType::i8, DType::u8, DType::boolean}) {
    const Tensor x = ctx_.from(std::vector<double>{-2, -0.0, 0.3, 1, 5, 40}, {6}, dtype);
    const Tensor on = ctx_.from(std::vector<int>{1, 0, 1, 1, 0, 0}, {6}, DType::boolean);
    for (const double v : {0.1, -0.7, 1e-3, -0.0, 1e30}) {
      if (is_integer(dtype) && v == 1e30) continue;  // full_like: an Error
      expect_as_constants(
          [&](const Tensor& t) {
            return std::vector{
                t + v,          v * t, t / v, t < v, maximum(t, v), where(on, t, v), clamp(t, v, v + 1),
                full_like(t, v)};
          },
          x, v);
    }
    for (const std::int64_t v : {100ll, 300ll, -7ll, 9007199254740993ll}) {
      const DType beside = dtype == DType::boolean ? DType::i32 : dtype;
      if (is_integer(beside) && wrap_to(beside, v) != v) continue;  // an Error
      expect_as_constants([&](const Tensor& t) { return std::vector{t + v, t == v, v - t}; }, x,
                          static_cast<double>(v));
    }
  }
  // Not through a double.
  const Tensor big = ctx_.from(std::vector<std::int64_t>{1}, {1}) + std::int64_t{9007199254740993};
  EXPECT_EQ(big.to_vector<std::int64_t>()[0], 9007199254740994);
}

TEST_F(Literals, ShareOneProgramInEagerOperations) {
  const Tensor x = ctx_.ones({5}), n = ctx_.ones({5}, DType::i64), b = ctx_.ones({5}, DType::bf16);
  const Tensor on = x > 0.25;
  const auto all = [&](double v) {
    const auto whole = static_cast<std::int64_t>(v * 100);
    return sum(x + v) + sum(v - x) + sum(clamp(x, v, v + 3)) + sum(where(on, x, v)) + sum(pow(x, v)) +
           sum(full_like(x, v)) + sum(ctx_.full({5}, v)) + sum(cast(n * whole, DType::f32)) +
           sum(cast(b * v, DType::f32));
  };
  all(0.37);
  const std::size_t before = programs();
  for (int i = 1; i < 40; ++i) all(0.37 + i * 0.1137);
  EXPECT_EQ(programs(), before);
}

TEST_F(Literals, ReadFromTheHostShareOneProgram) {
  const auto f = compile([](const Tensor& x) {
    const double level = sum(x).item();
    return exp(x * 3.0) * level + (level + 0.25);
  });
  f(ctx_.full({4}, 0.3));
  const std::size_t before = programs();
  for (int i = 1; i < 20; ++i) {
    const double v = 0.3 + 0.01 * i;
    EXPECT_NEAR(f(ctx_.full({4}, v)).to_vector<float>()[0], std::exp(3 * v) * 4 * v + 4 * v + 0.25, 1e-4);
  }
  EXPECT_EQ(programs(), before);
}

TEST_F(Literals, OfDerivativesShareOneProgram) {
  const Tensor x = ctx_.full({4}, 2.5);
  const auto slope = [&](double v) {
    return grad([&](const Tensor& t) { return sum(pow(t, 3) * v); })(x).to_vector<float>()[0];
  };
  EXPECT_NEAR(slope(0.3), 3 * 6.25 * 0.3, 1e-5);
  const std::size_t before = programs();
  for (int i = 1; i < 20; ++i) EXPECT_NEAR(slope(0.3 + i), 3 * 6.25 * (0.3 + i), 1e-3);
  EXPECT_EQ(programs(), before);
}

TEST_F(Literals, OfCompiledFunctionsAreConstants) {
  const auto f = compile([](const Tensor& x) { return x * 3.25 + 4.75; });
  f(ctx_.ones({4}));
  EXPECT_EQ(f.report()[0].graph.find("a1"), std::string::npos) << f.report()[0].graph;
  EXPECT_NE(f.report()[0].graph.find("3.25"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
