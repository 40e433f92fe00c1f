// Composites against their formulas, at the edges where a formula written naively fails.
#include "ops/composites.h"

#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace tilewright::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One f64 input of the numbers given.
struct Composites : testing::Test {
  ir::Graph g;
  std::vector<ir::HostTensor> inputs;
  Value input(const std::vector<double>& numbers, Shape shape = {}, DType dtype = DType::f64) {
    if (shape.rank() == 0) shape = Shape({static_cast<Index>(numbers.size())});
    inputs.push_back({.type = {dtype, shape}});
    if (is_float(dtype))
      inputs.back().f = numbers;
    else
      inputs.back().i.assign(numbers.begin(), numbers.end());
    return {&g, g.add_input("x", inputs.back().type)};
  }
  Value seed(Index value) {
    inputs.push_back({.type = {DType::i64, {}}, .i = {value}});
    return {&g, g.add_input("seed", inputs.back().type)};
  }
  std::vector<double> numbers(Value v) {
    g.set_outputs({v.id});
    const ir::HostTensor out = evaluate(g, inputs)[0];
    if (is_float(out.type.dtype)) return out.f;
    return {out.i.begin(), out.i.end()};
  }
};

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double bound = 1e-12) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(wanted[i]))
      EXPECT_EQ(got[i], wanted[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], wanted[i], bound) << "element " << i;
  }
}

TEST_F(Composites, MeanAndVariance) {
  const Value x = input({1, 2, 3, 6});
  expect_near(numbers(mean(x)), {3});
  expect_near(numbers(var(x)), {3.5});
  expect_near(numbers(var(x, {0}, {.ddof = 1, .keep = Keep::yes})), {14.0 / 3});
}

TEST_F(Composites, MeanOfIntegersIsAFloat) {
  const Value x = input({1, 2}, {}, DType::i32);
  EXPECT_EQ(mean(x).dtype(), DType::f32);
  expect_near(numbers(mean(x)), {1.5});
}

TEST_F(Composites, LogsumexpAtTheEdges) {
  const Value x = input({1000, 1000, -kInfinity, -kInfinity, kInfinity, 0}, {3, 2});
  expect_near(numbers(logsumexp(x, {1})), {1000 + std::log(2.0), -kInfinity, kInfinity});
  EXPECT_EQ(logsumexp(x, {1}, Keep::yes).shape(), Shape({3, 1}));
}

TEST_F(Composites, SoftmaxRowsAddUpToOneWithoutOverflow) {
  const Value x = input({1e4, 1e4 - 1, 0, -1e4}, {1, 4});
  const double e = std::exp(-1.0);
  expect_near(numbers(softmax(x)), {1 / (1 + e), e / (1 + e), 0, 0});
  expect_near(numbers(log_softmax(x)),
              {-std::log(1 + e), -1 - std::log(1 + e), -1e4 - std::log(1 + e), -2e4 - std::log(1 + e)}, 1e-9);
}

TEST_F(Composites, NarrowTypesStayInTheGraph) {
  const Value x = input({1, 2}, {1, 2}, DType::bf16);
  const Value gamma = input({1, 2}, {2}, DType::f32);
  EXPECT_EQ(softmax(x).dtype(), DType::bf16);
  EXPECT_EQ(layer_norm(x, gamma, gamma).dtype(), DType::bf16);
  EXPECT_EQ(rms_norm(x, gamma).dtype(), DType::bf16);
  EXPECT_EQ(gelu(x).dtype(), DType::bf16);
}

TEST_F(Composites, Activations) {
  const double nan = std::nan("");
  const Value x = input({-2, 0, 3});
  expect_near(numbers(relu(x)), {0, 0, 3});
  EXPECT_TRUE(std::isnan(numbers(relu(input({nan})))[0]));
  expect_near(numbers(clamp(x, -1, 2)), {-1, 0, 2});
  EXPECT_TRUE(std::isnan(numbers(clamp(input({nan}), -1, 2))[0]));
  const double inf = std::numeric_limits<double>::infinity();
  expect_near(numbers(clamp(input({0, 3, -inf, inf}), 2, 1)), {1, 1, 1, 1});
  for (const auto& [low, high] : {std::pair{nan, 1.0}, {-1.0, nan}, {nan, nan}})
    for (const double v : numbers(clamp(x, low, high))) EXPECT_TRUE(std::isnan(v)) << low << " " << high;
  expect_near(numbers(elu(x, 2)), {2 * std::expm1(-2.0), 0, 3});
  expect_near(numbers(silu(x)), {-2 / (1 + std::exp(2.0)), 0, 3 / (1 + std::exp(-3.0))});
  expect_near(numbers(softplus(input({-800, 0, 800}))), {0, std::log(2.0), 800});
  expect_near(numbers(gelu(x)),
              {-2 * 0.5 * std::erfc(std::sqrt(2.0)), 0, 3 * 0.5 * std::erfc(-3 / std::sqrt(2.0))});
  const double c = std::sqrt(2 / 3.14159265358979323846);
  expect_near(numbers(gelu(x, Gelu::tanh)), {-1 * (1 + std::tanh(c * (-2 - 0.044715 * 8))), 0,
                                             1.5 * (1 + std::tanh(c * (3 + 0.044715 * 27)))});
}

TEST_F(Composites, Normalizations) {
  const Value x = input({1, 2, 3, 6}, {1, 4});
  const double scale = 1 / std::sqrt(3.5 + 0.5);
  expect_near(numbers(layer_norm(x, std::nullopt, std::nullopt, 0.5)),
              {-2 * scale, -1 * scale, 0, 3 * scale});
  const double rms = 1 / std::sqrt(12.5 + 0.5);
  expect_near(numbers(rms_norm(x, input({1, 1, 1, 2}), 0.5)), {rms, 2 * rms, 3 * rms, 12 * rms});
}

TEST_F(Composites, CrossEntropyIsTheMeanOfPickedLogProbabilities) {
  const Value logits = input({1, 2, 3, 1000, 0, 0}, {2, 3});
  const Value labels = input({2, 1}, {2}, DType::i32);
  const double lse = std::log(std::exp(-2.0) + std::exp(-1.0) + 1);
  expect_near(numbers(cross_entropy(logits, labels)), {(lse + 1000) / 2});
  expect_near(numbers(cross_entropy(logits, labels, {.reduction = Reduction::none})), {lse, 1000});
  expect_near(numbers(cross_entropy(logits, labels, {.ignore_index = 1})), {lse});
  expect_near(numbers(cross_entropy(logits, labels, {.ignore_index = 1, .reduction = Reduction::sum})),
              {lse});
}

TEST_F(Composites, CrossEntropyOfNarrowLogitsIsF32) {
  const Value labels = input({0}, {1}, DType::i64);
  EXPECT_EQ(cross_entropy(input({1, 2}, {1, 2}, DType::bf16), labels).type(), (ir::Type{DType::f32, {}}));
  EXPECT_THROW(cross_entropy(input({1, 2}, {2, 1}), labels), Error);
}

TEST_F(Composites, OneHotAndEmbedding) {
  const Value index = input({2, 0, 5}, {3}, DType::i64);
  expect_near(numbers(one_hot(index, 3)), {0, 0, 1, 1, 0, 0, 0, 0, 0});
  expect_near(numbers(embedding(input({1, 2, 3, 4, 5, 6}, {3, 2}), index)), {5, 6, 1, 2, 0, 0});
}

TEST_F(Composites, RandIsUniformAndAFunctionOfSeedAndOffset) {
  const Value s = seed(7);
  const auto x = numbers(rand(s, {20000}));
  EXPECT_EQ(x, numbers(rand(s, {20000})));
  EXPECT_NE(x, numbers(rand(seed(8), {20000})));
  // 1 is not among them in any type, though most random bits would round to it in the narrowest.
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::f64})
    for (const double v : numbers(rand(s, {20000}, 0, dtype))) {
      ASSERT_LT(round_to(dtype, v), 1) << name(dtype);
      ASSERT_GE(v, 0);
    }
  const auto later = numbers(rand(s, {10}, 5));
  EXPECT_EQ(later, std::vector<double>(x.begin() + 5, x.begin() + 15));
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*low, 0);
  EXPECT_LT(*high, 1);
  // The mean of n uniform numbers has deviation 1 / sqrt(12 n) = 0.002; five of them.
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / 20000, 0.5, 0.01);
}

TEST_F(Composites, RandnHasTheMomentsOfANormal) {
  const auto x = numbers(randn(seed(3), {40000}));
  double mean = 0, square = 0, fourth = 0;
  for (double v : x) {
    ASSERT_TRUE(std::isfinite(v));
    mean += v / 40000;
    square += v * v / 40000;
    fourth += v * v * v * v / 40000;
  }
  // Five deviations: 1 / sqrt(n), sqrt(2 / n), sqrt(96 / n).
  EXPECT_NEAR(mean, 0, 0.025);
  EXPECT_NEAR(square, 1, 0.036);
  EXPECT_NEAR(fourth, 3, 0.25);
}

TEST_F(Composites, DropoutKeepsTheShareAndTheScale) {
  const Value ones = input(std::vector<double>(20000, 1.0));
  const auto y = numbers(dropout(ones, seed(1), {.p = 0.25}));
  const auto kept = std::count_if(y.begin(), y.end(), [](double v) { return v != 0; });
  EXPECT_NEAR(static_cast<double>(kept) / 20000, 0.75, 0.016);  // five deviations
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 4.0 / 3, 1e-12);
  EXPECT_EQ(dropout(ones, seed(1), {.p = 0}).id, ones.id);
  EXPECT_THROW(dropout(ones, seed(1), {.p = 1}), Error);
}

}  // namespace
}  // namespace tilewright::ops
