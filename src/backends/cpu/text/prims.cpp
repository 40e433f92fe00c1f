// The table of primitives; casts; monoids.
#include "backends/cpu/text/prims.h"

#include <tilewright/base/error.h>

#include <array>
#include <limits>

namespace tilewright::cpu {

using tile::Monoid;
using tile::Prim;

namespace {

// {0} {1} {2} stand for the operands. `on_bool` where the text for bool differs; empty: as the others.
struct PrimText {
  Prim prim;
  bool is_operator;  // else a function, which takes all operands in one form
  std::string_view text;
  std::string_view header;       // that declares it
  std::string_view narrow = "";  // text for vectors of other than 32-bit elements
  std::string_view on_bool = "";
  bool vectors_only = false;  // the header has no scalar form
};

constexpr PrimText kPrimTexts[] = {
    {Prim::add, true, "{0} + {1}", ""},
    {Prim::sub, true, "{0} - {1}", ""},
    {Prim::mul, true, "{0} * {1}", ""},
    {Prim::div, false, "div({0}, {1})", "tw_cpu/elementwise.h"},
    {Prim::rem, false, "rem({0}, {1})", "tw_cpu/elementwise.h"},
    {Prim::min, false, "min({0}, {1})", ""},
    {Prim::max, false, "max({0}, {1})", ""},
    {Prim::pow, false, "pow({0}, {1})", "tw_cpu/pow.h", "", "", true},
    {Prim::atan2, false, "atan2({0}, {1})", "tw_cpu/atan2.h", "", "", true},
    {Prim::neg, true, "-{0}", ""},
    {Prim::abs, false, "abs({0})", ""},
    {Prim::sign, false, "sign({0})", "tw_cpu/elementwise.h"},
    {Prim::floor, false, "floor({0})", "tw_cpu/elementwise.h"},
    {Prim::ceil, false, "ceil({0})", "tw_cpu/elementwise.h"},
    {Prim::round, false, "round({0})", "tw_cpu/elementwise.h"},
    {Prim::trunc, false, "trunc({0})", "tw_cpu/elementwise.h"},
    {Prim::sqrt, false, "sqrt({0})", "tw_cpu/root.h"},
    {Prim::rsqrt, false, "rsqrt({0})", "tw_cpu/root.h", "", "", true},
    {Prim::reciprocal, false, "reciprocal({0})", "tw_cpu/elementwise.h"},
    {Prim::exp, false, "exp({0})", "tw_cpu/exp.h", "", "", true},
    {Prim::exp2, false, "exp2({0})", "tw_cpu/exp2.h", "", "", true},
    {Prim::expm1, false, "expm1({0})", "tw_cpu/expm1.h", "", "", true},
    {Prim::log, false, "log({0})", "tw_cpu/log.h", "", "", true},
    {Prim::log2, false, "log2({0})", "tw_cpu/log2.h", "", "", true},
    {Prim::log1p, false, "log1p({0})", "tw_cpu/log1p.h", "", "", true},
    {Prim::sin, false, "sin({0})", "tw_cpu/sin.h", "", "", true},
    {Prim::cos, false, "cos({0})", "tw_cpu/cos.h", "", "", true},
    {Prim::tan, false, "tan({0})", "tw_cpu/tan.h", "", "", true},
    {Prim::tanh, false, "tanh({0})", "tw_cpu/tanh.h", "", "", true},
    {Prim::erf, false, "erf({0})", "tw_cpu/erf.h", "", "", true},
    {Prim::sigmoid, false, "sigmoid({0})", "tw_cpu/sigmoid.h", "", "", true},
    {Prim::fma, false, "fma({0}, {1}, {2})", "", "", "", true},
    {Prim::select, false, "select({0}, {1}, {2})", ""},
    {Prim::eq, true, "{0} == {1}", "", "eq({0}, {1})"},
    {Prim::ne, true, "{0} != {1}", "", "ne({0}, {1})"},
    {Prim::lt, true, "{0} < {1}", "", "lt({0}, {1})"},
    {Prim::le, true, "{0} <= {1}", "", "le({0}, {1})"},
    {Prim::gt, true, "{0} > {1}", "", "lt({1}, {0})"},
    {Prim::ge, true, "{0} >= {1}", "", "le({1}, {0})"},
    {Prim::isnan, true, "{0} != {0}", "", "ne({0}, {0})"},
    {Prim::bit_and, true, "{0} & {1}", ""},
    {Prim::bit_or, true, "{0} | {1}", ""},
    {Prim::bit_xor, true, "{0} ^ {1}", ""},
    {Prim::bit_not, true, "~{0}", "", "", "!{0}"},
    {Prim::shl, false, "shl({0}, {1})", "tw_cpu/elementwise.h"},
    {Prim::shr, false, "shr({0}, {1})", "tw_cpu/elementwise.h"},
};
constexpr bool prims_in_order() {
  for (std::size_t i = 0; i < std::size(kPrimTexts); ++i)
    if (static_cast<std::size_t>(kPrimTexts[i].prim) != i) return false;
  return std::size(kPrimTexts) == tile::kPrimCount;
}
static_assert(prims_in_order(), "kPrimTexts has one row per Prim, in the order of the enum");

std::string fill_in(std::string_view pattern, const std::vector<std::string>& operands) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{') {
      text += operands[static_cast<std::size_t>(pattern[i + 1] - '0')];
      i += 2;
    } else {
      text += pattern[i];
    }
  }
  return text;
}

std::string in_parentheses(const Term& t) { return t.is_simple ? t.text : "(" + t.text + ")"; }
// A function's type comes from its arguments, and an integer literal alone, "(-3)" too, would be an int.
std::string argument(const Term& t) {
  return t.number && is_integer(t.dtype) ? fmt::format("{}({})", scalar_type(t.dtype), t.text) : t.text;
}
bool is_narrow_integer(DType d) { return d == DType::i8 || d == DType::u8; }

}  // namespace

Amount amount_of(const Term& term) {
  if (term.number) return Amount::literal(term.number->i, in_parentheses(term));
  return term.is_simple ? Amount::named(term.text) : Amount::expression(term.text);
}

std::string as_vector(KernelText& k, const Term& term) {
  if (term.form == Form::vector) return term.text;
  if (is_bool(term.dtype)) {
    k.include("tw_cpu/masked.h");
    return fmt::format("mask_of({})", term.text);
  }
  return fmt::format("{}({})", vector_type(term.dtype), term.text);
}

Term apply_text(KernelText& k, const tile::Op& op, const std::vector<Term>& operands) {
  const PrimText& row = kPrimTexts[static_cast<std::size_t>(op.prim)];
  const DType stored = operands[op.prim == Prim::select ? 1 : 0].dtype;
  const DType dtype = info(op.prim).to_bool ? compute_dtype(stored) : stored;
  Term result{.dtype = k.kernel.type(op.results[0]).dtype};
  for (const Term& t : operands)
    if (t.form == Form::vector) result.form = Form::vector;
  const bool vector = result.form == Form::vector;
  if (!row.header.empty()) k.include(row.header);
  if (row.vectors_only && dtype == DType::f64) k.include("tw_cpu/f64.h");

  std::string_view pattern = row.text;
  if (is_bool(dtype) && !vector && !row.on_bool.empty()) pattern = row.on_bool;
  if (k.weights.count(op.results[0]) != 0) {
    k.include("tw_cpu/weight.h");
    pattern = "exp_weight({0})";
  }
  const bool compares_narrow = vector && !row.narrow.empty() && memory_bytes(dtype) != 4 && !is_bool(dtype);
  if (compares_narrow) pattern = row.narrow;
  const bool is_operator = row.is_operator && !compares_narrow;
  const bool through_vector = !vector && row.vectors_only;

  if (op.prim == Prim::abs && dtype == DType::u8) return operands[0];
  if (op.prim == Prim::select && !vector) {
    result.text = fmt::format("({} ? {} : {})", operands[0].text, operands[1].text, operands[2].text);
    return result;
  }
  std::vector<std::string> texts;
  for (const Term& original : operands) {
    // Narrow floats are compared as the numbers they stand for.
    const bool as_number = info(op.prim).to_bool && is_narrow_float(original.dtype);
    const Term t = as_number ? cast_text(k, DType::f32, original) : original;
    // An operator spreads a scalar over the lanes itself, but not over a mask or bytes.
    const bool spreads = is_operator && memory_bytes(t.dtype) >= 4;
    if (is_operator && t.form == Form::vector)
      texts.push_back(in_parentheses(t));
    else if ((vector && !spreads) || through_vector)
      texts.push_back(as_vector(k, t));
    else
      texts.push_back(is_operator ? in_parentheses(t) : argument(t));
  }
  result.text = fill_in(pattern, texts);
  result.is_simple = !is_operator;
  if (through_vector) result.text += "[0]";
  // C++ computes small integers as int; the type wraps around. Narrow scalars are cut back.
  if (!vector && is_operator && is_narrow_integer(dtype) && !info(op.prim).to_bool) {
    result.text = fmt::format("({})({})", scalar_type(dtype), result.text);
    result.is_simple = true;
  }
  return result;
}

namespace {

// A call of a function that the headers have for vectors only.
Term vector_call(KernelText& k, std::string_view header, std::string_view function, DType to, const Term& t) {
  k.include(header);
  Term result{.text = fmt::format("{}({})", function, as_vector(k, t)), .dtype = to, .form = t.form};
  if (t.form == Form::scalar) result.text += "[0]";
  return result;
}

Term narrow_cast(KernelText& k, DType to, const Term& t) {
  const DType from = t.dtype;
  if (is_narrow_float(from)) {
    const Term wide = vector_call(k, "tw_cpu/narrow.h", fmt::format("{}_to_f32", name(from)), DType::f32, t);
    return cast_text(k, to, wide);
  }
  // Every i8 and u8 is an f32; from f64, and integers through it, the two roundings must act as one.
  const bool exact_in_f32 = from == DType::f32 || memory_bytes(from) == 1;
  const Term wide = exact_in_f32 ? cast_text(k, DType::f32, t)
                                 : vector_call(k, "tw_cpu/narrow.h", "f64_to_f32_odd", DType::f32,
                                               cast_text(k, DType::f64, t));
  return vector_call(k, "tw_cpu/narrow.h", fmt::format("f32_to_{}", name(to)), to, wide);
}

}  // namespace

Term cast_text(KernelText& k, DType to, const Term& t) {
  Term result{.dtype = to, .form = t.form};
  const DType from = t.dtype;
  const bool vector = t.form == Form::vector;
  if (from == to) return t;
  if (is_narrow_float(from) || is_narrow_float(to)) return narrow_cast(k, to, t);
  if (is_float(from) && is_integer(to))
    return vector_call(k, "tw_cpu/convert.h", fmt::format("to_{}", name(to)), to, t);
  if (is_bool(to)) {
    result.text =
        vector ? fmt::format("ne({}, {}(0))", t.text, vector_type(from)) : fmt::format("({} != 0)", t.text);
  } else if (is_bool(from)) {
    result.text = vector ? fmt::format("select({}, {}(1), {}(0))", t.text, vector_type(to), vector_type(to))
                         : fmt::format("{}({})", scalar_type(to), t.text);
  } else {
    result.text = vector ? fmt::format("convert<{}>({})", vector_type(to), t.text)
                         : fmt::format("{}({})", scalar_type(to), t.text);
  }
  return result;
}

tile::Number identity_of(Monoid monoid, DType dtype) {
  const bool lowest = monoid == Monoid::max;
  switch (monoid) {
    case Monoid::prod:
    case Monoid::logical_and:
      return {1, 1};
    case Monoid::max:
    case Monoid::min: {
      const double infinity = std::numeric_limits<double>::infinity();
      if (is_float(dtype)) return {lowest ? -infinity : infinity, 0};
      const bool is_unsigned = dtype == DType::u8;
      const int bits = 8 * memory_bytes(dtype) - (is_unsigned ? 0 : 1);
      const Index top = static_cast<Index>((std::uint64_t{1} << bits) - 1);
      return {0, lowest ? (is_unsigned ? 0 : -top - 1) : top};
    }
    default:
      return {0, 0};
  }
}

std::string identity_text(Monoid monoid, DType dtype) {
  const tile::Number identity = identity_of(monoid, dtype);
  if (monoid == Monoid::logical_and || monoid == Monoid::logical_or)
    return identity.i != 0 ? "true" : "false";
  const bool extreme = monoid == Monoid::max || monoid == Monoid::min;
  return extreme && !is_float(dtype) ? int_text(identity.i) : literal(dtype, identity);
}

std::string combine_text(Monoid monoid, const std::string& a, const std::string& b) {
  switch (monoid) {
    case Monoid::sum:
      return fmt::format("{} + {}", a, b);
    case Monoid::prod:
      return fmt::format("{} * {}", a, b);
    case Monoid::max:
      return fmt::format("max({}, {})", a, b);
    case Monoid::min:
      return fmt::format("min({}, {})", a, b);
    case Monoid::logical_and:
      return fmt::format("{} & {}", a, b);
    case Monoid::logical_or:
      return fmt::format("{} | {}", a, b);
    default:
      break;
  }
  TW_CHECK(false, "argmax and argmin combine two values each");
}

std::string across_lanes_text(KernelText& k, Monoid monoid, const std::string& vector) {
  const bool finds = tile::finds_place(monoid);
  k.include(finds ? "tw_cpu/extreme.h" : "tw_cpu/reduce.h");
  switch (monoid) {
    case Monoid::sum:
      return fmt::format("reduce_sum({})", vector);
    case Monoid::prod:
      return fmt::format("reduce_prod({})", vector);
    case Monoid::max:
      return fmt::format("reduce_max({})", vector);
    case Monoid::min:
      return fmt::format("reduce_min({})", vector);
    case Monoid::logical_and:
      return fmt::format("all({})", vector);
    case Monoid::logical_or:
      return fmt::format("any({})", vector);
    case Monoid::argmax:
      return fmt::format("reduce_extreme<Side::greatest>({})", vector);
    case Monoid::argmin:
      return fmt::format("reduce_extreme<Side::least>({})", vector);
  }
  return vector;
}

}  // namespace tilewright::cpu
