// Rows of binary arithmetic.
#include "ops/row_parts.h"

#include <limits>
#include <numbers>

namespace tilewright::ops {

namespace {

double divide(double a, double b) { return a / b; }
std::int64_t divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<std::int64_t>(-modular(a)) : a / b;  // the lowest number / -1 would trap
}
double remainder(double a, double b) { return std::fmod(a, b); }
std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}

// The operand that is not the extreme gets no gradient; ties share it. A NaN is neither: both get it.
Grads extreme_vjp(Value a, Value b, Value a_loses, Value b_loses, Value g) {
  const Value kept = where(eq(a, b), 0.5 * g, g);
  return {where(a_loses, 0.0, kept), where(b_loses, 0.0, kept)};
}

Grads pow_vjp(Args x, const Attrs&, Value y, Value g) {
  const Value a = x[0];
  const Value b = x[1];
  // The number from which on all finite ones are even, and one less of them odd: b - 1 is rounded to an even
  // one, whose powers have lost the sign.
  const double all_even = compute_dtype(g.dtype()) == DType::f64 ? 0x1p53 : 0x1p24;
  const Value rounded = pow(a, b - 1.0);
  const Value even = bit_and(ge(abs(b), all_even), lt(abs(b), std::numeric_limits<double>::infinity()));
  const Value power = where(bit_and(even, lt(a, 0.0)), -abs(rounded), rounded);
  const Value by_base = where(eq(b, 0.0), 0.0, g * b * power);
  // Zero to any power from 0 on does not change with the exponent, though its logarithm is infinite.
  const Value stays = bit_and(eq(a, 0.0), ge(b, 0.0));
  const Value by_exponent = where(stays, 0.0, g * y * log(a));
  return {by_base, by_exponent};
}

// b / (a² + b²) and -a / (a² + b²) by way of a / m and b / m, m the larger magnitude: squares of large
// numbers are infinite, of small ones 0.
Grads atan2_vjp(Args x, const Attrs&, Value, Value g) {
  const Value larger = minimum(maximum(abs(x[0]), abs(x[1])), max_finite(g.dtype()));
  const Value up = x[0] / larger, along = x[1] / larger;
  const Value scaled = g / (up * up + along * along) / larger;
  return {scaled * along, -(scaled * up)};
}

// Length of (a, b) by their quotient, whose square neither overflows nor, where it counts, vanishes.
tile::Value lower_hypot(tile::Builder&, std::span<const tile::Value> x, const Attrs&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const tile::Value a = abs(x[0]), b = abs(x[1]), longer = max(a, b), ratio = min(a, b) / longer;
  const tile::Value length = where(longer == 0.0, longer, longer * sqrt(ratio * ratio + 1.0));
  return where((a == kInfinity) | (b == kInfinity), kInfinity, length);  // of a NaN, too: C99
}

// Beside the larger only e to the power -|a - b| is added. Equal infinities have no difference.
tile::Value lower_logaddexp(tile::Builder&, std::span<const tile::Value> x, const Attrs&) {
  const tile::Value apart = where(x[0] == x[1], 0.0, abs(x[0] - x[1]));
  return max(x[0], x[1]) + log1p(exp(-apart));
}

Grads logaddexp_vjp(Args x, const Attrs&, Value, Value g) {
  const Value apart = where(bit_and(eq(x[0], x[1]), isinf(x[0])), 0.0, x[0] - x[1]);
  return {g * sigmoid(apart), g * sigmoid(-apart)};
}

}  // namespace

constexpr ir::Op kAdd = checked({.name = "add",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a + b; integers wrap around.",
                                 .infer = arithmetic_operands,
                                 .eval = map_numbers([](auto a, auto b) { return modular(a) + modular(b); }),
                                 .vjp = [](Args, const Attrs&, Value, Value g) -> Grads { return {g, g}; },
                                 .lower = apply_prim<Prim::add>,
                                 .flops = flops_of(Prim::add)});

constexpr ir::Op kSub = checked({.name = "sub",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a - b; integers wrap around.",
                                 .infer = arithmetic_operands,
                                 .eval = map_numbers([](auto a, auto b) { return modular(a) - modular(b); }),
                                 .vjp = [](Args, const Attrs&, Value, Value g) -> Grads { return {g, -g}; },
                                 .lower = apply_prim<Prim::sub>,
                                 .flops = flops_of(Prim::sub)});

constexpr ir::Op kMul = checked({.name = "mul",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a * b; integers wrap around.",
                                 .infer = arithmetic_operands,
                                 .eval = map_numbers([](auto a, auto b) { return modular(a) * modular(b); }),
                                 // A square has one term, not two that are equal: twice a number is exact.
                                 .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
                                   if (x[0].id == x[1].id) return {g * x[0] * 2.0, std::nullopt};
                                   return {g * x[1], g * x[0]};
                                 },
                                 .lower = apply_prim<Prim::mul>,
                                 .flops = flops_of(Prim::mul)});

constexpr ir::Op kDiv = checked(
    {.name = "div",
     .arity = 2,
     .kind = OpClass::pointwise,
     .doc = "a / b; of integers: truncated toward zero, x / 0 = 0.",
     .infer = arithmetic_operands,
     .eval = map_numbers([](auto a, auto b) { return divide(a, b); }),
     .vjp = [](Args x, const Attrs&, Value y, Value g) -> Grads { return {g / x[1], -(g * y / x[1])}; },
     .lower = apply_prim<Prim::div>,
     .flops = flops_of(Prim::div),
     .domain = {.low = 0.5, .high = 4}});

constexpr ir::Op kRem = checked(
    {.name = "rem",
     .arity = 2,
     .kind = OpClass::pointwise,
     .doc = "Remainder of truncated division, with the sign of a; x rem 0 = x of integers.",
     .infer = arithmetic_operands,
     .eval = map_numbers([](auto a, auto b) { return remainder(a, b); }),
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g, -(g * trunc(x[0] / x[1]))}; },
     .lower = apply_prim<Prim::rem>,
     .flops = flops_of(Prim::rem),
     .domain = {.low = 0.5, .high = 4, .smooth = false}});

constexpr ir::Op kPow = checked({.name = "pow",
                                 .arity = 2,
                                 .kind = OpClass::pointwise,
                                 .doc = "a to the power b, with C's special values.",
                                 .infer = float_operands,
                                 .eval = map_floats([](double a, double b) { return std::pow(a, b); }),
                                 .vjp = pow_vjp,
                                 .lower = apply_prim<Prim::pow>,
                                 .flops = flops_of(Prim::pow),
                                 .domain = {.low = 0.25, .high = 3}});

constexpr ir::Op kAtan2 = checked({.name = "atan2",
                                   .arity = 2,
                                   .kind = OpClass::pointwise,
                                   .doc = "The angle of the point (b, a), in (-pi, pi].",
                                   .infer = float_operands,
                                   .eval = map_floats([](double a, double b) { return std::atan2(a, b); }),
                                   .vjp = atan2_vjp,
                                   .lower = apply_prim<Prim::atan2>,
                                   .flops = flops_of(Prim::atan2),
                                   .domain = {.low = 0.25, .high = 4}});

constexpr ir::Op kHypot = checked(
    {.name = "hypot",
     .arity = 2,
     .kind = OpClass::pointwise,
     .doc = "sqrt(a * a + b * b), without overflow between.",
     .infer = float_operands,
     .eval = map_floats([](double a, double b) { return std::hypot(a, b); }),
     .vjp = [](Args x, const Attrs&, Value y, Value g) -> Grads { return {g * (x[0] / y), g * (x[1] / y)}; },
     .lower = lower_hypot,
     .flops = flops_of(Prim::div) + flops_of(Prim::sqrt) + 12,
     .domain = {.low = 0.25, .high = 4}});

constexpr ir::Op kLogAddExp = checked(
    {.name = "logaddexp",
     .arity = 2,
     .kind = OpClass::pointwise,
     .doc = "log(exp(a) + exp(b)), without overflow between.",
     .infer = float_operands,
     .eval = map_floats([](double a, double b) {
       return a == b ? a + std::numbers::ln2 : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
     }),
     .vjp = logaddexp_vjp,
     .lower = lower_logaddexp,
     .flops = flops_of(Prim::exp) + flops_of(Prim::log1p) + 8});

constexpr ir::Op kMinimum =
    checked({.name = "minimum",
             .arity = 2,
             .kind = OpClass::pointwise,
             .doc = "The smaller of a and b; NaN if either is. Ties share the gradient.",
             .infer = arithmetic_operands,
             .eval = map_numbers([](auto a, auto b) { return a < b || a != a ? a : b; }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
               return extreme_vjp(x[0], x[1], gt(x[0], x[1]), lt(x[0], x[1]), g);
             },
             .lower = apply_prim<Prim::min>,
             .flops = flops_of(Prim::min),
             .domain = {.smooth = false}});

constexpr ir::Op kMaximum =
    checked({.name = "maximum",
             .arity = 2,
             .kind = OpClass::pointwise,
             .doc = "The larger of a and b; NaN if either is. Ties share the gradient.",
             .infer = arithmetic_operands,
             .eval = map_numbers([](auto a, auto b) { return a > b || a != a ? a : b; }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
               return extreme_vjp(x[0], x[1], lt(x[0], x[1]), gt(x[0], x[1]), g);
             },
             .lower = apply_prim<Prim::max>,
             .flops = flops_of(Prim::max),
             .domain = {.smooth = false}});

}  // namespace tilewright::ops
