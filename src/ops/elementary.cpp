// Rows of functions of one number.
#include "ops/row_parts.h"

#include <numbers>

namespace tilewright::ops {

namespace {

double sign_of(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }  // NaN and zero stay
std::int64_t sign_of(std::int64_t a) { return (a > 0) - (a < 0); }
double magnitude(double a) { return std::fabs(a); }
std::int64_t magnitude(std::int64_t a) { return a < 0 ? static_cast<std::int64_t>(-modular(a)) : a; }

constexpr double kLn2 = std::numbers::ln2;
constexpr ir::Domain kPositive = {.low = 0.1, .high = 4};
constexpr ir::Domain kSteps = {.smooth = false};

}  // namespace

constexpr ir::Op kNeg = checked({.name = "neg",
                                 .arity = 1,
                                 .kind = OpClass::pointwise,
                                 .doc = "-a.",
                                 .infer = arithmetic_operands,
                                 .eval = map_numbers([](auto a) { return -modular(a); }),
                                 .vjp = [](Args, const Attrs&, Value, Value g) -> Grads { return {-g}; },
                                 .lower = apply_prim<Prim::neg>,
                                 .flops = flops_of(Prim::neg)});

constexpr ir::Op kAbs =
    checked({.name = "abs",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "The magnitude of a; the lowest integer stays.",
             .infer = arithmetic_operands,
             .eval = map_numbers([](auto a) { return magnitude(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g * sign(x[0])}; },
             .lower = apply_prim<Prim::abs>,
             .flops = flops_of(Prim::abs),
             .domain = kSteps});

constexpr ir::Op kSign = checked({.name = "sign",
                                  .arity = 1,
                                  .kind = OpClass::pointwise,
                                  .doc = "-1, 0 or 1; NaN stays NaN.",
                                  .infer = arithmetic_operands,
                                  .eval = map_numbers([](auto a) { return sign_of(a); }),
                                  .vjp = zero_gradient,
                                  .lower = apply_prim<Prim::sign>,
                                  .flops = flops_of(Prim::sign),
                                  .domain = kSteps});

constexpr ir::Op kFloor = checked({.name = "floor",
                                   .arity = 1,
                                   .kind = OpClass::pointwise,
                                   .doc = "The largest whole number not above a.",
                                   .infer = float_operands,
                                   .eval = map_floats([](double a) { return std::floor(a); }),
                                   .vjp = zero_gradient,
                                   .lower = apply_prim<Prim::floor>,
                                   .flops = flops_of(Prim::floor),
                                   .domain = kSteps});

constexpr ir::Op kCeil = checked({.name = "ceil",
                                  .arity = 1,
                                  .kind = OpClass::pointwise,
                                  .doc = "The smallest whole number not below a.",
                                  .infer = float_operands,
                                  .eval = map_floats([](double a) { return std::ceil(a); }),
                                  .vjp = zero_gradient,
                                  .lower = apply_prim<Prim::ceil>,
                                  .flops = flops_of(Prim::ceil),
                                  .domain = kSteps});

constexpr ir::Op kRound = checked({.name = "round",
                                   .arity = 1,
                                   .kind = OpClass::pointwise,
                                   .doc = "The nearest whole number, ties to even.",
                                   .infer = float_operands,
                                   .eval = map_floats([](double a) { return std::rint(a); }),
                                   .vjp = zero_gradient,
                                   .lower = apply_prim<Prim::round>,
                                   .flops = flops_of(Prim::round),
                                   .domain = kSteps});

constexpr ir::Op kTrunc = checked({.name = "trunc",
                                   .arity = 1,
                                   .kind = OpClass::pointwise,
                                   .doc = "The whole number next to a toward zero.",
                                   .infer = float_operands,
                                   .eval = map_floats([](double a) { return std::trunc(a); }),
                                   .vjp = zero_gradient,
                                   .lower = apply_prim<Prim::trunc>,
                                   .flops = flops_of(Prim::trunc),
                                   .domain = kSteps});

constexpr ir::Op kSqrt =
    checked({.name = "sqrt",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Square root.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::sqrt(a); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {0.5 * g / y}; },
             .lower = apply_prim<Prim::sqrt>,
             .flops = flops_of(Prim::sqrt),
             .domain = kPositive});

constexpr ir::Op kRsqrt =
    checked({.name = "rsqrt",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "1 / sqrt(a).",
             .infer = float_operands,
             .eval = map_floats([](double a) { return 1 / std::sqrt(a); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {-0.5 * (g * y * y * y)}; },
             .lower = apply_prim<Prim::rsqrt>,
             .flops = flops_of(Prim::rsqrt),
             .domain = kPositive});

constexpr ir::Op kReciprocal =
    checked({.name = "reciprocal",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "1 / a.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return 1 / a; }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {-(g * y * y)}; },
             .lower = apply_prim<Prim::reciprocal>,
             .flops = flops_of(Prim::reciprocal),
             .domain = kPositive});

constexpr ir::Op kExp = checked({.name = "exp",
                                 .arity = 1,
                                 .kind = OpClass::pointwise,
                                 .doc = "e to the power a.",
                                 .infer = float_operands,
                                 .eval = map_floats([](double a) { return std::exp(a); }),
                                 .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {g * y}; },
                                 .lower = apply_prim<Prim::exp>,
                                 .flops = flops_of(Prim::exp)});

constexpr ir::Op kExp2 =
    checked({.name = "exp2",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "2 to the power a.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::exp2(a); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {g * y * kLn2}; },
             .lower = apply_prim<Prim::exp2>,
             .flops = flops_of(Prim::exp2)});

constexpr ir::Op kExpm1 =
    checked({.name = "expm1",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "exp(a) - 1, exact near 0.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::expm1(a); }),
             // Not y + 1, which cancels far below 0.
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g * exp(x[0])}; },
             .lower = apply_prim<Prim::expm1>,
             .flops = flops_of(Prim::expm1)});

constexpr ir::Op kLog =
    checked({.name = "log",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Natural logarithm.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::log(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / x[0]}; },
             .lower = apply_prim<Prim::log>,
             .flops = flops_of(Prim::log),
             .domain = kPositive});

constexpr ir::Op kLog2 =
    checked({.name = "log2",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Logarithm to base 2.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::log2(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / (x[0] * kLn2)}; },
             .lower = apply_prim<Prim::log2>,
             .flops = flops_of(Prim::log2),
             .domain = kPositive});

constexpr ir::Op kLog10 = checked(
    {.name = "log10",
     .arity = 1,
     .kind = OpClass::pointwise,
     .doc = "Logarithm to base 10.",
     .infer = float_operands,
     .eval = map_floats([](double a) { return std::log10(a); }),
     .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / (x[0] * std::numbers::ln10)}; },
     .lower =
         [](tile::Builder& k, std::span<const tile::Value> x, const Attrs&) {
           // The factor in two parts that f32 holds: rounded to one, it would be wrong by half a unit more.
           // Both are positive, so that infinities stay what they are.
           constexpr double kWhole = std::numbers::ln2 / std::numbers::ln10;
           constexpr double kHigh = static_cast<float>(kWhole) - 0x1p-25, kLow = kWhole - kHigh;
           const tile::Value log = k.apply(Prim::log2, {x[0]});
           return log * kHigh + log * kLow;
         },
     .flops = flops_of(Prim::log2) + 3,
     .domain = kPositive});

constexpr ir::Op kLog1p =
    checked({.name = "log1p",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "log(1 + a), exact near 0.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::log1p(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g / (x[0] + 1.0)}; },
             .lower = apply_prim<Prim::log1p>,
             .flops = flops_of(Prim::log1p),
             .domain = {.low = -0.75, .high = 4}});

constexpr ir::Op kSin =
    checked({.name = "sin",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Sine of a in radians.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::sin(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {g * cos(x[0])}; },
             .lower = apply_prim<Prim::sin>,
             .flops = flops_of(Prim::sin)});

constexpr ir::Op kCos =
    checked({.name = "cos",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Cosine of a in radians.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::cos(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads { return {-(g * sin(x[0]))}; },
             .lower = apply_prim<Prim::cos>,
             .flops = flops_of(Prim::cos)});

constexpr ir::Op kTan =
    checked({.name = "tan",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Tangent of a in radians.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::tan(a); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {g * (y * y + 1.0)}; },
             .lower = apply_prim<Prim::tan>,
             .flops = flops_of(Prim::tan),
             .domain = {.low = -1.25, .high = 1.25}});

constexpr ir::Op kTanh =
    checked({.name = "tanh",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Hyperbolic tangent.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::tanh(a); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {g * (1.0 - y * y)}; },
             .lower = apply_prim<Prim::tanh>,
             .flops = flops_of(Prim::tanh)});

constexpr ir::Op kErf =
    checked({.name = "erf",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "Error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to a.",
             .infer = float_operands,
             .eval = map_floats([](double a) { return std::erf(a); }),
             .vjp = [](Args x, const Attrs&, Value, Value g) -> Grads {
               return {g * exp(-(x[0] * x[0])) * (2 * std::numbers::inv_sqrtpi)};
             },
             .lower = apply_prim<Prim::erf>,
             .flops = flops_of(Prim::erf)});

constexpr ir::Op kSigmoid =
    checked({.name = "sigmoid",
             .arity = 1,
             .kind = OpClass::pointwise,
             .doc = "1 / (1 + exp(-a)).",
             .infer = float_operands,
             .eval = map_floats([](double a) { return 1 / (1 + std::exp(-a)); }),
             .vjp = [](Args, const Attrs&, Value y, Value g) -> Grads { return {g * y * (1.0 - y)}; },
             .lower = apply_prim<Prim::sigmoid>,
             .flops = flops_of(Prim::sigmoid)});

}  // namespace tilewright::ops
