// Rows of inverse trigonometric functions, of hyperbolic functions and of their inverses. Each is written so
// that it is accurate over all numbers: near zeros and poles nothing cancels, and nothing overflows before
// the result does.
#include "ops/row_parts.h"

#include <limits>
#include <numbers>

namespace tilewright::ops {

namespace {

using TileValues = std::span<const tile::Value>;

constexpr double kOverflowed =
    std::numeric_limits<double>::infinity();  // what exp() is past the largest number
constexpr ir::Domain kBelowOne = {.low = -0.9, .high = 0.9};

// sqrt(1 - x²); of graphs and of kernels.
template <class V>
V other_leg(const V& x) {
  return sqrt((1.0 - x) * (x + 1.0));
}

// Functions that are odd are computed of |x|. Of a zero, whose sign sign() need not keep, they are it.
tile::Value with_sign_of(tile::Builder& k, const tile::Value& x, const tile::Value& magnitude) {
  return where(x == 0.0, x, magnitude * k.apply(Prim::sign, {x}));
}

// exp(a) / 2, where exp(a) is infinite and its half may not be.
tile::Value half_of_exp(const tile::Value& a) {
  const tile::Value root = exp(0.5 * a);
  return 0.5 * root * root;
}

// expm1 keeps what exp(a) - exp(-a) cancels near 0.
tile::Value lower_sinh(tile::Builder& k, TileValues x, const Attrs&) {
  const tile::Value a = abs(x[0]), e = expm1(a);
  return with_sign_of(k, x[0], where(e < kOverflowed, 0.5 * (e + e / (e + 1.0)), half_of_exp(a)));
}

tile::Value lower_cosh(tile::Builder&, TileValues x, const Attrs&) {
  const tile::Value a = abs(x[0]), e = exp(a);
  return where(e < kOverflowed, 0.5 * e + 0.5 / e, half_of_exp(a));
}

// log(a + sqrt(a² + 1)): up to 1 by log1p; past it log(a) + log(1 + sqrt(1 + 1/a²)), in which no square
// overflows.
tile::Value lower_asinh(tile::Builder& k, TileValues x, const Attrs&) {
  const tile::Value a = abs(x[0]), large = a > 1.0;
  const tile::Value small = where(large, 1.0 / a, a), root = sqrt(small * small + 1.0);
  const tile::Value rest = log1p(where(large, root, a + a * a / (root + 1.0)));
  return with_sign_of(k, x[0], rest + log(where(large, a, 1.0)));
}

// log(a + sqrt(a² - 1)): up to 2 by log1p of what exceeds 1; past it as asinh. Below 1 the product under the
// root is negative, by the magnitude also below -1: NaN.
tile::Value lower_acosh(tile::Builder&, TileValues x, const Attrs&) {
  const tile::Value a = x[0], large = a > 2.0, inverse = 1.0 / a, excess = a - 1.0;
  const tile::Value root = sqrt(where(large, (1.0 - inverse) * (inverse + 1.0), excess * abs(excess + 2.0)));
  return log1p(where(large, root, excess + root)) + log(where(large, a, 1.0));
}

tile::Value lower_atanh(tile::Builder& k, TileValues x, const Attrs&) {
  const tile::Value a = abs(x[0]);
  return with_sign_of(k, x[0], 0.5 * log1p(2.0 * a / (1.0 - a)));
}

}  // namespace

constexpr ir::Op kAsin =
    checked({.name = "asin",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "The angle in [-pi/2, pi/2] whose sine is a; NaN outside [-1, 1].",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::asin(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / other_leg(x[0])}; },
             .lower = [](tile::Builder& k, TileValues x,
                         const Attrs&) { return k.apply(Prim::atan2, {x[0], other_leg(x[0])}); },
             .flops = flops_of(Prim::atan2) + flops_of(Prim::sqrt) + 3,
             .domain = kBelowOne});

constexpr ir::Op kAcos =
    checked({.name = "acos",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "The angle in [0, pi] whose cosine is a; NaN outside [-1, 1].",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::acos(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {-(g / other_leg(x[0]))}; },
             .lower = [](tile::Builder& k, TileValues x,
                         const Attrs&) { return k.apply(Prim::atan2, {other_leg(x[0]), x[0]}); },
             .flops = flops_of(Prim::atan2) + flops_of(Prim::sqrt) + 3,
             .domain = kBelowOne});

constexpr ir::Op kAtan = checked(
    {.name = "atan",
     .arity = 1,
     .kind = OpClass::pointwise,
     .doc = "The angle in [-pi/2, pi/2] whose tangent is a.",
     .infer = float_operands,
     .eval = map_floats([](double a) { return std::atan(a); }),
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / (x[0] * x[0] + 1.0)}; },
     .lower = [](tile::Builder& k, TileValues x, const Attrs&) { return k.apply(Prim::atan2, {x[0], 1.0}); },
     .flops = flops_of(Prim::atan2)});

constexpr ir::Op kSinh =
    checked({.name = "sinh",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Hyperbolic sine.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::sinh(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g * cosh(x[0])}; },
             .lower = lower_sinh,
             .flops = flops_of(Prim::expm1) + flops_of(Prim::exp) + flops_of(Prim::div) + 12});

constexpr ir::Op kCosh =
    checked({.name = "cosh",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Hyperbolic cosine.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::cosh(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g * sinh(x[0])}; },
             .lower = lower_cosh,
             .flops = 2 * flops_of(Prim::exp) + flops_of(Prim::div) + 8});

constexpr ir::Op kAsinh =
    checked({.name = "asinh",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "The number whose hyperbolic sine is a.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::asinh(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / hypot(x[0], 1.0)}; },
             .lower = lower_asinh,
             .flops = flops_of(Prim::log1p) + flops_of(Prim::log) + flops_of(Prim::sqrt) +
                      2 * flops_of(Prim::div) + 14});

constexpr ir::Op kAcosh = checked(
    {.name = "acosh",
     .arity = 1,
     .kind = OpClass::pointwise,
     .doc = "The number of at least 0 whose hyperbolic cosine is a; NaN below 1.",
     .infer = float_operands,
     .eval = map_floats([](double a) { return std::acosh(a); }),
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
       return {g / (sqrt(x[0] - 1.0) * sqrt(x[0] + 1.0))};
     },
     .lower = lower_acosh,
     .flops = flops_of(Prim::log1p) + flops_of(Prim::log) + flops_of(Prim::sqrt) + flops_of(Prim::div) + 14,
     .domain = {.low = 1.25, .high = 4}});

constexpr ir::Op kAtanh = checked(
    {.name = "atanh",
     .arity = 1,
     .kind = OpClass::pointwise,
     .doc = "The number whose hyperbolic tangent is a; NaN outside [-1, 1].",
     .infer = float_operands,
     .eval = map_floats([](double a) { return std::atanh(a); }),
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / ((1.0 - x[0]) * (x[0] + 1.0))}; },
     .lower = lower_atanh,
     .flops = flops_of(Prim::log1p) + flops_of(Prim::div) + 8,
     .domain = kBelowOne});

}  // namespace tilewright::ops
