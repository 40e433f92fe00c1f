// What functions and their gradients give at the limits of their type, written by hand: special values by
// C99's annex F (IEEE 754), gradients as PyTorch has them, numbers between by the C library in float64.
#pragma once

#include "ops/composites.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <vector>

namespace tilewright::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A cell of the table: a number, or what the row's formula says of the argument.
struct Cell {
  constexpr Cell(double n) : number(n) {}
  struct ByFormula {};
  constexpr Cell(ByFormula) : by_formula(true) {}
  double number = 0;
  bool by_formula = false;
};
inline constexpr Cell::ByFormula F;

// Arguments, in this order. 96 lies beyond the range in which f32's saturating functions change, and every
// type has it.
inline constexpr int kArguments = 11;
inline constexpr const char* kArgumentNames[kArguments] = {
    "-inf", "-largest", "-96", "-smallest", "-0", "0", "smallest", "96", "largest", "inf", "NaN"};

struct UnaryLimits {
  const char* name;
  ir::Value (*apply)(ir::Value);
  double (*value_at)(double);
  double (*gradient_at)(double);
  Cell value[kArguments];
  Cell gradient[kArguments];
};

namespace limits {
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
inline double normal_density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// The slope of gelu by tanh, as PyTorch has it: NaN where the square of x is beyond f32. Past 50 the
// polynomial is beyond every saturation.
inline double gelu_tanh_slope(double x) {
  if (std::isinf(static_cast<float>(x) * static_cast<float>(x))) return kNaN;
  if (std::abs(x) > 50) return x > 0 ? 1 : 0;
  const double u = 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x), s = sigmoid(u);
  return s + x * s * (1 - s) * 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
}
inline double one(double) { return 1; }
inline double zero(double) { return 0; }
}  // namespace limits

// clang-format off
inline const UnaryLimits kUnaryLimits[] = {
    // name, function, value, gradient
    //  -inf  -largest  -96   -small  -0     0     small  96    largest inf   NaN
    {"neg", [](ir::Value x) { return ops::neg(x); }, [](double x) { return -x; }, [](double) { return -1.0; },
     {kInf,   F,        F,     F,     0.0,  -0.0,  F,     F,    F,     -kInf, kNaN},
     {-1,    -1,       -1,    -1,    -1,    -1,   -1,    -1,   -1,     -1,   -1}},
    {"abs", [](ir::Value x) { return ops::abs(x); }, [](double x) { return std::fabs(x); }, limits::one,
     {kInf,   F,        F,     F,     0.0,   0.0,  F,     F,    F,      kInf, kNaN},
     {-1,    -1,       -1,    -1,     0,     0,    1,     1,    1,      1,    kNaN}},
    {"sign", [](ir::Value x) { return ops::sign(x); }, limits::one, limits::zero,
     {-1,    -1,       -1,    -1,     0,     0,    1,     1,    1,      1,    kNaN},
     {0,      0,        0,     0,     0,     0,    0,     0,    0,      0,    0}},
    {"floor", [](ir::Value x) { return ops::floor(x); }, [](double x) { return std::floor(x); }, limits::zero,
     {-kInf,  F,       -96,   -1,    -0.0,   0.0,  0.0,   96,   F,      kInf, kNaN},
     {0,      0,        0,     0,     0,     0,    0,     0,    0,      0,    0}},
    {"ceil", [](ir::Value x) { return ops::ceil(x); }, [](double x) { return std::ceil(x); }, limits::zero,
     {-kInf,  F,       -96,   -0.0,  -0.0,   0.0,  1,     96,   F,      kInf, kNaN},
     {0,      0,        0,     0,     0,     0,    0,     0,    0,      0,    0}},
    {"round", [](ir::Value x) { return ops::round(x); }, [](double x) { return std::nearbyint(x); }, limits::zero,
     {-kInf,  F,       -96,   -0.0,  -0.0,   0.0,  0.0,   96,   F,      kInf, kNaN},
     {0,      0,        0,     0,     0,     0,    0,     0,    0,      0,    0}},
    {"trunc", [](ir::Value x) { return ops::trunc(x); }, [](double x) { return std::trunc(x); }, limits::zero,
     {-kInf,  F,       -96,   -0.0,  -0.0,   0.0,  0.0,   96,   F,      kInf, kNaN},
     {0,      0,        0,     0,     0,     0,    0,     0,    0,      0,    0}},
    {"sqrt", [](ir::Value x) { return ops::sqrt(x); }, [](double x) { return std::sqrt(x); },
     [](double x) { return 0.5 / std::sqrt(x); },
     {kNaN,   kNaN,     kNaN,  kNaN, -0.0,   0.0,  F,     F,    F,      kInf, kNaN},
     {kNaN,   kNaN,     kNaN,  kNaN, -kInf,  kInf, F,     F,    F,      0,    kNaN}},
    {"rsqrt", [](ir::Value x) { return ops::rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); },
     [](double x) { return -0.5 / x / std::sqrt(x); },
     {kNaN,   kNaN,     kNaN,  kNaN, -kInf,  kInf, F,     F,    F,      0,    kNaN},
     {kNaN,   kNaN,     kNaN,  kNaN,  kInf, -kInf, F,     F,    F,      0,    kNaN}},
    {"reciprocal", [](ir::Value x) { return ops::reciprocal(x); }, [](double x) { return 1 / x; },
     [](double x) { return -1 / x / x; },
     {-0.0,   F,        F,     F,    -kInf,  kInf, F,     F,    F,      0.0,  kNaN},
     {0,      F,        F,     F,    -kInf, -kInf, F,     F,    F,      0,    kNaN}},
    {"exp", [](ir::Value x) { return ops::exp(x); }, [](double x) { return std::exp(x); },
     [](double x) { return std::exp(x); },
     {0,      0,        F,     1,     1,     1,    1,     F,    kInf,   kInf, kNaN},
     {0,      0,        F,     1,     1,     1,    1,     F,    kInf,   kInf, kNaN}},
    {"exp2", [](ir::Value x) { return ops::exp2(x); }, [](double x) { return std::exp2(x); },
     [](double x) { return std::exp2(x) * std::numbers::ln2; },
     {0,      0,        F,     1,     1,     1,    1,     F,    kInf,   kInf, kNaN},
     {0,      0,        F,     F,     F,     F,    F,     F,    kInf,   kInf, kNaN}},
    {"expm1", [](ir::Value x) { return ops::expm1(x); }, [](double x) { return std::expm1(x); },
     [](double x) { return std::exp(x); },
     {-1,    -1,       -1,     F,    -0.0,   0.0,  F,     F,    kInf,   kInf, kNaN},
     {0,      0,        F,     1,     1,     1,    1,     F,    kInf,   kInf, kNaN}},
    {"log", [](ir::Value x) { return ops::log(x); }, [](double x) { return std::log(x); },
     [](double x) { return 1 / x; },
     {kNaN,   kNaN,     kNaN,  kNaN, -kInf, -kInf, F,     F,    F,      kInf, kNaN},
     {0,      F,        F,     F,    -kInf,  kInf, F,     F,    F,      0,    kNaN}},
    {"log2", [](ir::Value x) { return ops::log2(x); }, [](double x) { return std::log2(x); },
     [](double x) { return 1 / x / std::numbers::ln2; },
     {kNaN,   kNaN,     kNaN,  kNaN, -kInf, -kInf, F,     F,    F,      kInf, kNaN},
     {0,      F,        F,     F,    -kInf,  kInf, F,     F,    F,      0,    kNaN}},
    {"log1p", [](ir::Value x) { return ops::log1p(x); }, [](double x) { return std::log1p(x); },
     [](double x) { return 1 / (1 + x); },
     {kNaN,   kNaN,     kNaN,  F,    -0.0,   0.0,  F,     F,    F,      kInf, kNaN},
     {0,      F,        F,     F,     1,     1,    F,     F,    F,      0,    kNaN}},
    {"sin", [](ir::Value x) { return ops::sin(x); }, [](double x) { return std::sin(x); },
     [](double x) { return std::cos(x); },
     {kNaN,   F,        F,     F,    -0.0,   0.0,  F,     F,    F,      kNaN, kNaN},
     {kNaN,   F,        F,     1,     1,     1,    1,     F,    F,      kNaN, kNaN}},
    {"cos", [](ir::Value x) { return ops::cos(x); }, [](double x) { return std::cos(x); },
     [](double x) { return -std::sin(x); },
     {kNaN,   F,        F,     1,     1,     1,    1,     F,    F,      kNaN, kNaN},
     {kNaN,   F,        F,     F,     0,     0,    F,     F,    F,      kNaN, kNaN}},
    {"tan", [](ir::Value x) { return ops::tan(x); }, [](double x) { return std::tan(x); },
     [](double x) { return 1 + std::tan(x) * std::tan(x); },
     {kNaN,   F,        F,     F,    -0.0,   0.0,  F,     F,    F,      kNaN, kNaN},
     {kNaN,   F,        F,     1,     1,     1,    1,     F,    F,      kNaN, kNaN}},
    {"tanh", [](ir::Value x) { return ops::tanh(x); }, [](double x) { return std::tanh(x); }, limits::one,
     {-1,    -1,       -1,     F,    -0.0,   0.0,  F,     1,    1,      1,    kNaN},
     {0,      0,        0,     1,     1,     1,    1,     0,    0,      0,    kNaN}},
    {"erf", [](ir::Value x) { return ops::erf(x); }, [](double x) { return std::erf(x); },
     [](double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); },
     {-1,    -1,       -1,     F,    -0.0,   0.0,  F,     1,    1,      1,    kNaN},
     {0,      0,        0,     F,     F,     F,    F,     0,    0,      0,    kNaN}},
    {"sigmoid", [](ir::Value x) { return ops::sigmoid(x); }, limits::sigmoid,
     [](double x) { return limits::sigmoid(x) * limits::sigmoid(-x); },
     {0,      0,        F,     0.5,   0.5,   0.5,  0.5,   1,    1,      1,    kNaN},
     {0,      0,        F,     F,     0.25,  0.25, F,     0,    0,      0,    kNaN}},
    {"square", [](ir::Value x) { return ops::square(x); }, [](double x) { return x * x; },
     [](double x) { return 2 * x; },
     {kInf,   F,        F,     F,     0.0,   0.0,  F,     F,    F,      kInf, kNaN},
     {-kInf,  F,        F,     F,     0,     0,    F,     F,    F,      kInf, kNaN}},
    {"relu", [](ir::Value x) { return ops::relu(x); }, [](double x) { return x; }, limits::one,
     {0,      0,        0,     0,     0,     0,    F,     F,    F,      kInf, kNaN},
     {0,      0,        0,     0,     0,     0,    1,     1,    1,      1,    1}},
    {"gelu", [](ir::Value x) { return ops::gelu(x); }, [](double x) { return x * limits::normal_cdf(x); },
     [](double x) { return limits::normal_cdf(x) + x * limits::normal_density(x); },
     {kNaN,  -0.0,     -0.0,   F,    -0.0,   0.0,  F,     96,   F,      kInf, kNaN},
     {kNaN,   0,        0,     F,     0.5,   0.5,  F,     1,    1,      kNaN, kNaN}},
    {"gelu_tanh", [](ir::Value x) { return ops::gelu(x, ops::Gelu::tanh); },
     [](double x) { return x * (x > 50 ? 1 : 0.5); }, limits::gelu_tanh_slope,
     {kNaN,  -0.0,     -0.0,   F,    -0.0,   0.0,  F,     96,   F,      kInf, kNaN},
     {kNaN,   F,        0,     F,     0.5,   0.5,  F,     1,    F,      kNaN, kNaN}},
    {"silu", [](ir::Value x) { return ops::silu(x); }, [](double x) { return x * limits::sigmoid(x); },
     [](double x) { return limits::sigmoid(x) * (1 + x * limits::sigmoid(-x)); },
     {kNaN,  -0.0,      F,     F,    -0.0,   0.0,  F,     96,   F,      kInf, kNaN},
     {kNaN,   0,        F,     F,     0.5,   0.5,  F,     1,    1,      kNaN, kNaN}},
    {"softplus", [](ir::Value x) { return ops::softplus(x); },
     [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, limits::sigmoid,
     {0,      0,        F,     F,     F,     F,    F,     96,   F,      kInf, kNaN},
     {0,      0,        F,     F,     0.5,   0.5,  F,     1,    1,      1,    kNaN}},
    {"elu", [](ir::Value x) { return ops::elu(x); }, [](double x) { return x > 0 ? x : std::expm1(x); },
     [](double x) { return x > 0 ? 1 : std::exp(x); },
     {-1,    -1,       -1,     F,    -0.0,   0.0,  F,     96,   F,      kInf, kNaN},
     {0,      0,        F,     1,     1,     1,    1,     1,    1,      1,    kNaN}},
};
// clang-format on

// Two operands, and the gradients to both.
struct Cells {
  double a, b;
  double value, da, db;
};
// L, S: the type's largest and smallest numbers, exchanged for these.
inline constexpr double L = 0x1p1000, S = 0x1p-1000;
// 1 / L and half of that.
inline constexpr double kOneOfL = 0x1p-900, kHalfOfL = 0x1p-901;

struct BinaryLimits {
  const char* name;
  ir::Value (*apply)(ir::Value, ir::Value);
  std::initializer_list<Cells> rows;
};

// clang-format off
inline const BinaryLimits kBinaryLimits[] = {
    {"add", [](ir::Value a, ir::Value b) { return ops::add(a, b); },
     {{kInf, -kInf, kNaN, 1, 1}, {kInf, 1, kInf, 1, 1}, {L, L, kInf, 1, 1}, {L, -L, 0.0, 1, 1},
      {-0.0, -0.0, -0.0, 1, 1}, {-0.0, 0.0, 0.0, 1, 1}, {S, -S, 0.0, 1, 1}, {kNaN, 1, kNaN, 1, 1}}},
    {"sub", [](ir::Value a, ir::Value b) { return ops::sub(a, b); },
     {{kInf, kInf, kNaN, 1, -1}, {-kInf, 1, -kInf, 1, -1}, {-L, L, -kInf, 1, -1}, {L, L, 0.0, 1, -1},
      {-0.0, 0.0, -0.0, 1, -1}, {1, kNaN, kNaN, 1, -1}}},
    {"mul", [](ir::Value a, ir::Value b) { return ops::mul(a, b); },
     {{kInf, 0.0, kNaN, 0.0, kInf}, {kInf, -2, -kInf, -2, kInf}, {L, 2, kInf, 2, L}, {S, 0.25, 0.0, 0.25, S},
      {-0.0, 5, -0.0, 5, 0.0}, {kNaN, 0.0, kNaN, 0.0, kNaN}}},
    {"div", [](ir::Value a, ir::Value b) { return ops::div(a, b); },
     {{1, 0.0, kInf, kInf, -kInf}, {1, -0.0, -kInf, -kInf, -kInf}, {0.0, 0.0, kNaN, kInf, kNaN},
      {1, kInf, 0.0, 0.0, 0.0}, {kInf, 2, kInf, 0.5, -kInf}, {kInf, kInf, kNaN, 0.0, kNaN}, {L, 0.5, kInf, 2, -kInf},
      {-0.0, 3, -0.0, 1. / 3, 0.0}, {kNaN, 2, kNaN, 0.5, kNaN}, {2, kNaN, kNaN, kNaN, kNaN}}},
    {"rem", [](ir::Value a, ir::Value b) { return ops::rem(a, b); },
     {{5, 3, 2, 1, -1}, {-5, 3, -2, 1, 1}, {5, kInf, 5, 1, 0.0}, {-5, -kInf, -5, 1, 0.0}, {5, 0.0, kNaN, 1, -kInf},
      {kInf, 3, kNaN, 1, -kInf}, {-0.0, 3, -0.0, 1, 0.0}, {kNaN, 3, kNaN, 1, kNaN}, {S, 1, S, 1, 0.0}}},
    {"pow", [](ir::Value a, ir::Value b) { return ops::pow(a, b); },
     {{0.0, 0.0, 1, 0.0, 0.0}, {-0.0, 0.0, 1, 0.0, 0.0}, {0.0, 2, 0.0, 0.0, 0.0}, {0.0, 1, 0.0, 1, 0.0},
      {0.0, 0.5, 0.0, kInf, 0.0}, {0.0, -1, kInf, -kInf, -kInf}, {-0.0, -1, -kInf, -kInf, kInf},
      {-0.0, -2, kInf, kInf, -kInf}, {1, kInf, 1, kInf, 0.0}, {1, kNaN, 1, kNaN, 0.0},
      {kNaN, 0.0, 1, 0.0, kNaN}, {-1, kInf, 1, kInf, kNaN}, {-1, -kInf, 1, -kInf, kNaN},
      {kInf, 2, kInf, kInf, kInf}, {kInf, 0.0, 1, 0.0, kInf}, {-kInf, 3, -kInf, kInf, kNaN}, {-8, 2, 64, -16, kNaN},
      {-8, 0.5, kNaN, kNaN, kNaN}, {2, -kInf, 0.0, kNaN, 0.0}, {0.5, kInf, 0.0, kNaN, 0.0}, {2, kInf, kInf, kInf, kInf},
      {L, 1, L, 1, kInf}, {2, 4, 16, 32, 16 * std::numbers::ln2}}},
    {"atan2", [](ir::Value a, ir::Value b) { return ops::atan2(a, b); },
     {{0.0, 1, 0.0, 1, 0.0}, {-0.0, 1, -0.0, 1, 0.0}, {0.0, -1, std::numbers::pi, -1, 0.0},
      {-0.0, -1, -std::numbers::pi, -1, 0.0}, {1, 0.0, std::numbers::pi / 2, 0.0, -1},
      {-1, 0.0, -std::numbers::pi / 2, 0.0, 1}, {0.0, 0.0, 0.0, kNaN, kNaN},
      {0.0, -0.0, std::numbers::pi, kNaN, kNaN}, {kInf, 1, std::numbers::pi / 2, 0.0, kNaN},
      {1, kInf, 0.0, kNaN, 0.0}, {1, -kInf, std::numbers::pi, kNaN, 0.0},
      {kInf, kInf, std::numbers::pi / 4, kNaN, kNaN}, {kInf, -kInf, 3 * std::numbers::pi / 4, kNaN, kNaN},
      {L, L, std::numbers::pi / 4, kHalfOfL, -kHalfOfL}, {-L, 1, -std::numbers::pi / 2, 0.0, kOneOfL}, {kNaN, 1, kNaN, kNaN, kNaN}, {1, kNaN, kNaN, kNaN, kNaN}}},
    {"minimum", [](ir::Value a, ir::Value b) { return ops::minimum(a, b); },
     {{-kInf, L, -kInf, 1, 0}, {kInf, L, L, 0, 1}, {kInf, kInf, kInf, 0.5, 0.5}, {2, 2, 2, 0.5, 0.5},
      {S, 0.0, 0.0, 0, 1}, {kNaN, 1, kNaN, 1, 1}, {1, kNaN, kNaN, 1, 1}}},
    {"maximum", [](ir::Value a, ir::Value b) { return ops::maximum(a, b); },
     {{-kInf, -L, -L, 0, 1}, {kInf, L, kInf, 1, 0}, {-kInf, -kInf, -kInf, 0.5, 0.5}, {2, 2, 2, 0.5, 0.5},
      {S, 0.0, S, 1, 0}, {kNaN, 1, kNaN, 1, 1}, {1, kNaN, kNaN, 1, 1}}},
    {"where", [](ir::Value a, ir::Value b) { return ops::where(ops::lt(a, 2.0), a, b); },
     {{1, kNaN, 1, 1, 0}, {1, kInf, 1, 1, 0}, {3, kNaN, kNaN, 0, 1}, {kNaN, 1, 1, 0, 1}, {-kInf, kNaN, -kInf, 1, 0}}},
};
// clang-format on

// A row of numbers: what a function of it gives, and the gradient of the results' sum.
struct RowLimits {
  const char* name;
  ir::Value (*apply)(ir::Value);
  std::vector<double> x, value, gradient;
};

namespace limits {
inline ir::Value label_entropy(ir::Value x, Index label) {
  return ops::cross_entropy(x, ops::constant_int(*x.graph, DType::i64, {1}, label));
}
// The loss's gradient, not of a sum that is constant.
inline ir::Value first_softmax(ir::Value x) { return ops::slice_axis(ops::softmax(x), -1, {.stop = 1}); }
}  // namespace limits

// clang-format off
inline const std::vector<RowLimits> kRowLimits = {
    {"softmax", limits::first_softmax, {0, -kInf, 0}, {0.5}, {0.25, 0, -0.25}},
    {"softmax of -inf", limits::first_softmax, {-kInf, -kInf}, {kNaN}, {kNaN, kNaN}},
    {"softmax of inf", limits::first_softmax, {kInf, 0}, {kNaN}, {kNaN, kNaN}},
    {"log_softmax", [](ir::Value x) { return ops::log_softmax(x); }, {0, -kInf},
     {0.0, -kInf}, {-1, 1}},
    {"logsumexp", [](ir::Value x) { return ops::logsumexp(x, {-1}); }, {0, -kInf, 0},
     {std::numbers::ln2}, {0.5, 0, 0.5}},
    {"logsumexp of -inf", [](ir::Value x) { return ops::logsumexp(x, {-1}); }, {-kInf, -kInf}, {-kInf}, {0, 0}},
    {"logsumexp of inf", [](ir::Value x) { return ops::logsumexp(x, {-1}); }, {kInf, 0}, {kInf}, {kNaN, 0}},
    {"logsumexp of NaN", [](ir::Value x) { return ops::logsumexp(x, {-1}); }, {kNaN, 0}, {kNaN}, {kNaN, kNaN}},
    {"cross_entropy", [](ir::Value x) { return limits::label_entropy(x, 0); }, {0, -kInf, 0},
     {std::numbers::ln2}, {-0.5, 0, 0.5}},
    {"cross_entropy of a label at -inf", [](ir::Value x) { return limits::label_entropy(x, 1); }, {0, -kInf},
     {kInf}, {1, -1}},
    {"cross_entropy of -inf", [](ir::Value x) { return limits::label_entropy(x, 0); }, {-kInf, -kInf},
     {kNaN}, {kNaN, kNaN}},
    {"sum", [](ir::Value x) { return ops::sum(x, {-1}); }, {kInf, -kInf}, {kNaN}, {1, 1}},
    {"max", [](ir::Value x) { return ops::max(x, {-1}); }, {-kInf, 2, 2}, {2}, {0, 0.5, 0.5}},
    {"max of -inf", [](ir::Value x) { return ops::max(x, {-1}); }, {-kInf, -kInf}, {-kInf}, {0.5, 0.5}},
    {"max of NaN", [](ir::Value x) { return ops::max(x, {-1}); }, {kNaN, 2}, {kNaN}, {1, 0}},
    {"min", [](ir::Value x) { return ops::min(x, {-1}); }, {kInf, -kInf}, {-kInf}, {0, 1}},
    {"log of max", [](ir::Value x) { return ops::log(ops::max(x, {-1})); }, {0, -1}, {-kInf}, {kInf, 0}},
    {"prod", [](ir::Value x) { return ops::prod(x, {-1}); }, {0, 2, 3}, {0.0}, {6, 0, 0}},
    {"mean", [](ir::Value x) { return ops::mean(x, {-1}); }, {kInf, 1}, {kInf}, {0.5, 0.5}},
    {"cumsum", [](ir::Value x) { return ops::cumsum(x, -1); }, {1, kInf, -kInf}, {1, kInf, kNaN}, {3, 2, 1}},
};
// clang-format on

}  // namespace tilewright::test
