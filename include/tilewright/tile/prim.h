// The scalar primitives of tile IR, applied per element: one row each, with what they mean and cost.
//
// Semantics, once for every backend (the reference interpreter is their executable form):
// - Float primitives take operands of one type among f32 and f64 and round as that type does; narrow floats
//   must be cast to f32 first. A backend's f32 result is within `ulp` units in the last place of the exact
//   one.
// - Integers wrap around modulo 2^bits. div and rem truncate toward zero; x / 0 = 0 and x rem 0 = x, without
//   a trap. Shifts use the count modulo the width, shr is arithmetic for signed types.
// - min, max return NaN if either operand is NaN; -0 < +0 is not promised. Comparisons with NaN are false,
//   but for ne.
// - Booleans support and, or, xor, not, eq, ne, select; comparisons yield bool.
#pragma once

#include <optional>
#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright::tile {

enum class Prim {
  add,
  sub,
  mul,
  div,
  rem,
  min,
  max,
  pow,
  atan2,
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,
  trunc,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sin,
  cos,
  tan,
  tanh,
  erf,
  sigmoid,
  fma,
  select,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  isnan,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shl,
  shr,
};
inline constexpr int kPrimCount = static_cast<int>(Prim::shr) + 1;

// Which element types a primitive takes.
enum class PrimClass { arithmetic /* float or integer */, floating, integral /* integer or bool */, any };

struct PrimInfo {
  Prim prim;
  std::string_view name;
  int arity;
  PrimClass operands;
  bool to_bool;  // result is bool whatever the operand type
  double flops;  // counted operations per element, as the cost model sees them
  double ulp;    // f32 error bound a backend must meet, in units in the last place; 0.5 is correctly rounded
};

inline constexpr PrimInfo kPrims[kPrimCount] = {
    {Prim::add, "add", 2, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::sub, "sub", 2, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::mul, "mul", 2, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::div, "div", 2, PrimClass::arithmetic, false, 4, 1},
    {Prim::rem, "rem", 2, PrimClass::arithmetic, false, 8, 1},  // C's fmod: exact, sign of the dividend
    {Prim::min, "min", 2, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::max, "max", 2, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::pow, "pow", 2, PrimClass::floating, false, 40, 4},  // C's pow for special values
    {Prim::atan2, "atan2", 2, PrimClass::floating, false, 30, 4},
    {Prim::neg, "neg", 1, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::abs, "abs", 1, PrimClass::arithmetic, false, 1, 0.5},
    {Prim::sign, "sign", 1, PrimClass::arithmetic, false, 2, 0.5},  // -1, 0, 1; NaN stays NaN
    {Prim::floor, "floor", 1, PrimClass::floating, false, 1, 0.5},
    {Prim::ceil, "ceil", 1, PrimClass::floating, false, 1, 0.5},
    {Prim::round, "round", 1, PrimClass::floating, false, 1, 0.5},  // to nearest, ties to even
    {Prim::trunc, "trunc", 1, PrimClass::floating, false, 1, 0.5},
    {Prim::sqrt, "sqrt", 1, PrimClass::floating, false, 4, 1},
    {Prim::rsqrt, "rsqrt", 1, PrimClass::floating, false, 4, 2},
    {Prim::reciprocal, "reciprocal", 1, PrimClass::floating, false, 4, 1},
    {Prim::exp, "exp", 1, PrimClass::floating, false, 10, 2},
    {Prim::exp2, "exp2", 1, PrimClass::floating, false, 8, 2},
    {Prim::expm1, "expm1", 1, PrimClass::floating, false, 14, 2},
    {Prim::log, "log", 1, PrimClass::floating, false, 12, 2},
    {Prim::log2, "log2", 1, PrimClass::floating, false, 12, 2},
    {Prim::log1p, "log1p", 1, PrimClass::floating, false, 14, 2},
    {Prim::sin, "sin", 1, PrimClass::floating, false, 16, 2},
    {Prim::cos, "cos", 1, PrimClass::floating, false, 16, 2},
    {Prim::tan, "tan", 1, PrimClass::floating, false, 24, 4},
    {Prim::tanh, "tanh", 1, PrimClass::floating, false, 16, 2},
    {Prim::erf, "erf", 1, PrimClass::floating, false, 20, 2},
    // e^-|x| to 1 ulp, which is 2 of a quotient with a larger mantissa; likewise 1 of the sum's rounding;
    // 0.5.
    {Prim::sigmoid, "sigmoid", 1, PrimClass::floating, false, 14, 3.5},
    {Prim::fma, "fma", 3, PrimClass::floating, false, 2, 0.5},   // a * b + c, rounded once
    {Prim::select, "select", 3, PrimClass::any, false, 1, 0.5},  // first operand is bool
    {Prim::eq, "eq", 2, PrimClass::any, true, 1, 0.5},
    {Prim::ne, "ne", 2, PrimClass::any, true, 1, 0.5},
    {Prim::lt, "lt", 2, PrimClass::arithmetic, true, 1, 0.5},
    {Prim::le, "le", 2, PrimClass::arithmetic, true, 1, 0.5},
    {Prim::gt, "gt", 2, PrimClass::arithmetic, true, 1, 0.5},
    {Prim::ge, "ge", 2, PrimClass::arithmetic, true, 1, 0.5},
    {Prim::isnan, "isnan", 1, PrimClass::floating, true, 1, 0.5},
    {Prim::bit_and, "and", 2, PrimClass::integral, false, 1, 0.5},
    {Prim::bit_or, "or", 2, PrimClass::integral, false, 1, 0.5},
    {Prim::bit_xor, "xor", 2, PrimClass::integral, false, 1, 0.5},
    {Prim::bit_not, "not", 1, PrimClass::integral, false, 1, 0.5},
    {Prim::shl, "shl", 2, PrimClass::integral, false, 1, 0.5},
    {Prim::shr, "shr", 2, PrimClass::integral, false, 1, 0.5},
};

namespace detail {
constexpr bool prims_in_order() {
  for (int i = 0; i < kPrimCount; ++i)
    if (static_cast<int>(kPrims[i].prim) != i) return false;
  return true;
}
static_assert(prims_in_order(), "kPrims has one row per Prim, in the order of the enum");
}  // namespace detail

// The row of kPrims, its name, and the primitive of a name; none where there is no such primitive.
constexpr const PrimInfo& info(Prim prim) { return kPrims[static_cast<int>(prim)]; }
constexpr std::string_view name(Prim prim) { return info(prim).name; }
constexpr std::optional<Prim> parse_prim(std::string_view text) {
  for (const PrimInfo& row : kPrims)
    if (row.name == text) return row.prim;
  return std::nullopt;
}

// Associative combinations for reduce and scan. The order of combination is free (floats: any tree), except
// under a schedule that promises determinism, which only promises the same order every run. argmax, argmin
// yield the i64 index of the first extreme along the axis; a NaN counts as the extreme.
enum class Monoid { sum, prod, max, min, logical_and, logical_or, argmax, argmin };
std::string_view name(Monoid monoid);  // "sum" … "and", "or", "argmax"
// The monoid of a name; none where there is no such monoid.
std::optional<Monoid> parse_monoid(std::string_view text);
// Whether a reduction gives the place of an extreme (an i64), and the monoid of that extreme itself.
constexpr bool finds_place(Monoid monoid) { return monoid == Monoid::argmax || monoid == Monoid::argmin; }
constexpr Monoid extreme_of(Monoid place) { return place == Monoid::argmax ? Monoid::max : Monoid::min; }

}  // namespace tilewright::tile
#pragma GCC visibility pop
