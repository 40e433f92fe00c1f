// The table of primitives for CUDA, and its use.
#include "backends/cuda/print/prim_text.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <utility>

namespace tilewright::cuda {

using printer::Accuracy;
using tile::Prim;

namespace {

// One way to write a primitive.
struct Form {
  const char* text = nullptr;  // {0} {1} {2}; null: there is no such way
  std::string_view header;     // that declares what it calls
  // How tightly it binds, and how tightly its first operand and the others must bind to stand without
  // brackets. Some brackets are for readers: (a && b) || c.
  Binding binds = Binding::call, first = Binding::choice, others = Binding::choice;
};
constexpr Form arith(const char* call) { return {call, "arith"}; }
constexpr Form math(const char* call) { return {call, "math"}; }
constexpr Form fast(const char* call) { return {call, "math_fast"}; }
constexpr Form binary(const char* text, Binding binds, Binding first, Binding others) {
  return {text, "", binds, first, others};
}
constexpr Form comparison(const char* text, Binding binds) {
  return binary(text, binds, Binding::sum, Binding::sum);
}
constexpr Form of_wholes(const char* text, Binding binds) {
  return binary(text, binds, Binding::call, Binding::call);
}
constexpr Form kNone;
constexpr Form kPlus = binary("{0} + {1}", Binding::sum, Binding::sum, Binding::product),
               kMinus = binary("{0} - {1}", Binding::sum, Binding::sum, Binding::product),
               kTimes = binary("{0} * {1}", Binding::product, Binding::product, Binding::prefix),
               kQuotient = binary("{0} / {1}", Binding::product, Binding::product, Binding::prefix),
               kRemainder = binary("{0} % {1}", Binding::product, Binding::product, Binding::prefix),
               kChoice = binary("{0} ? {1} : {2}", Binding::choice, Binding::either, Binding::either),
               kBoth = binary("{0} && {1}", Binding::both, Binding::equality, Binding::equality),
               kEither = binary("{0} || {1}", Binding::either, Binding::equality, Binding::equality),
               kEqual = comparison("{0} == {1}", Binding::equality),
               kUnequal = comparison("{0} != {1}", Binding::equality),
               kLess = comparison("{0} < {1}", Binding::order),
               kAtMost = comparison("{0} <= {1}", Binding::order),
               kMore = comparison("{0} > {1}", Binding::order),
               kAtLeast = comparison("{0} >= {1}", Binding::order),
               kAnd = of_wholes("{0} & {1}", Binding::bits), kOr = of_wholes("{0} | {1}", Binding::bits),
               kXor = of_wholes("{0} ^ {1}", Binding::bits), kNegated = of_wholes("-{0}", Binding::prefix),
               kComplement = of_wholes("~{0}", Binding::prefix), kNot = of_wholes("!{0}", Binding::prefix),
               kRoundedProduct = arith("rounded_mul({0}, {1})");

// Operators where C++ says the same, functions of the device headers otherwise.
struct PrimText {
  Prim prim;
  Form wide;     // floats
  Form integer;  // integers and bool; none where not defined
  Form fast;     // f32 whose value ends in narrow floats; none: as wide
  Form coarse;   // f32 that reaches bf16 without a sum; none: as fast
};
constexpr PrimText kPrimTexts[tile::kPrimCount] = {
    {Prim::add, kPlus, arith("add({0}, {1})"), kNone, kNone},
    {Prim::sub, kMinus, arith("sub({0}, {1})"), kNone, kNone},
    {Prim::mul, kTimes, arith("mul({0}, {1})"), kNone, kNone},
    {Prim::div, arith("div({0}, {1})"), arith("div({0}, {1})"), fast("fast::div({0}, {1})"), kNone},
    {Prim::rem, arith("rem({0}, {1})"), arith("rem({0}, {1})"), kNone, kNone},
    {Prim::min, arith("min({0}, {1})"), arith("min({0}, {1})"), kNone, kNone},
    {Prim::max, arith("max({0}, {1})"), arith("max({0}, {1})"), kNone, kNone},
    {Prim::pow, math("pow({0}, {1})"), kNone, kNone, kNone},
    {Prim::atan2, math("atan2({0}, {1})"), kNone, kNone, kNone},
    {Prim::neg, kNegated, arith("neg({0})"), kNone, kNone},
    {Prim::abs, arith("abs({0})"), arith("abs({0})"), kNone, kNone},
    {Prim::sign, arith("sign({0})"), arith("sign({0})"), kNone, kNone},
    {Prim::floor, arith("floor({0})"), kNone, kNone, kNone},
    {Prim::ceil, arith("ceil({0})"), kNone, kNone, kNone},
    {Prim::round, arith("round({0})"), kNone, kNone, kNone},
    {Prim::trunc, arith("trunc({0})"), kNone, kNone, kNone},
    {Prim::sqrt, arith("sqrt({0})"), kNone, fast("fast::sqrt({0})"), kNone},
    {Prim::rsqrt, math("rsqrt({0})"), kNone, fast("fast::rsqrt({0})"), kNone},
    {Prim::reciprocal, arith("reciprocal({0})"), kNone, fast("fast::reciprocal({0})"), kNone},
    {Prim::exp, math("exp({0})"), kNone, fast("fast::exp({0})"), kNone},
    {Prim::exp2, math("exp2({0})"), kNone, fast("fast::exp2({0})"), kNone},
    {Prim::expm1, math("expm1({0})"), kNone, kNone, kNone},
    {Prim::log, math("log({0})"), kNone, fast("fast::log({0})"), kNone},
    {Prim::log2, math("log2({0})"), kNone, fast("fast::log2({0})"), kNone},
    {Prim::log1p, math("log1p({0})"), kNone, kNone, kNone},
    {Prim::sin, math("sin({0})"), kNone, kNone, fast("fast::sin({0})")},
    {Prim::cos, math("cos({0})"), kNone, kNone, fast("fast::cos({0})")},
    {Prim::tan, math("tan({0})"), kNone, kNone, kNone},
    {Prim::tanh, math("tanh({0})"), kNone, fast("fast::tanh_sum({0})"), fast("fast::tanh({0})")},
    {Prim::erf, math("erf({0})"), kNone, kNone, kNone},
    {Prim::sigmoid, math("sigmoid({0})"), kNone, fast("fast::sigmoid({0})"), kNone},
    {Prim::fma, arith("fma({0}, {1}, {2})"), kNone, kNone, kNone},
    {Prim::select, kChoice, kChoice, kNone, kNone},
    {Prim::eq, kEqual, kEqual, kNone, kNone},
    {Prim::ne, kUnequal, kUnequal, kNone, kNone},
    {Prim::lt, kLess, kLess, kNone, kNone},
    {Prim::le, kAtMost, kAtMost, kNone, kNone},
    {Prim::gt, kMore, kMore, kNone, kNone},
    {Prim::ge, kAtLeast, kAtLeast, kNone, kNone},
    {Prim::isnan, arith("isnan({0})"), kNone, kNone, kNone},
    {Prim::bit_and, kNone, kAnd, kNone, kNone},
    {Prim::bit_or, kNone, kOr, kNone, kNone},
    {Prim::bit_xor, kNone, kXor, kNone, kNone},
    {Prim::bit_not, kNone, kComplement, kNone, kNone},
    {Prim::shl, kNone, arith("shl({0}, {1})"), kNone, kNone},
    {Prim::shr, kNone, arith("shr({0}, {1})"), kNone, kNone},
};

constexpr bool complete() {
  for (int i = 0; i < tile::kPrimCount; ++i) {
    const PrimText& row = kPrimTexts[i];
    const tile::PrimInfo& info = tile::kPrims[i];
    if (row.prim != info.prim) return false;
    const bool floats = info.operands != tile::PrimClass::integral;
    const bool integers = info.operands != tile::PrimClass::floating;
    if (floats != (row.wide.text != nullptr) || integers != (row.integer.text != nullptr)) return false;
  }
  return true;
}
static_assert(complete(), "kPrimTexts has one row per Prim, in order, with a text for each class it takes");

const Form& of_numbers(const PrimUse& use) {
  const PrimText& row = kPrimTexts[static_cast<int>(use.prim)];
  if (!is_float(use.dtype)) return row.integer;
  if (use.rounded) return kRoundedProduct;
  if (compute_dtype(use.dtype) != DType::f32) return row.wide;
  if (use.accuracy == Accuracy::coarse && row.coarse.text != nullptr) return row.coarse;
  if (use.accuracy != Accuracy::exact && row.fast.text != nullptr) return row.fast;
  return row.wide;
}

// Integer operators that cannot wrap are written as C++ has them.
const Form& plain_operator(Prim prim) {
  switch (prim) {
    case Prim::add:
    case Prim::sub:
    case Prim::mul:
    case Prim::neg:
      return kPrimTexts[static_cast<int>(prim)].wide;
    case Prim::div:
      return kQuotient;
    case Prim::rem:
      return kRemainder;
    default:
      return kNone;
  }
}

const Form& chosen(const PrimUse& use) {
  if (use.prim == Prim::bit_not && is_bool(use.dtype)) return kNot;
  // && and || make predicates of comparisons; of & and | the compiler makes integers first.
  if (use.tests && use.prim == Prim::bit_and) return kBoth;
  if (use.tests && use.prim == Prim::bit_or) return kEither;
  if (!is_float(use.dtype) && !use.wraps)
    if (const Form& plain = plain_operator(use.prim); plain.text != nullptr) return plain;
  return of_numbers(use);
}

}  // namespace

TypedText prim_expression(const PrimUse& use, const std::vector<TypedText>& operands, DType type) {
  const Form& form = chosen(use);
  // A sum of indices stays one: behind a pointer its terms would be added to that one by one.
  const bool is_index_sum = !is_float(use.dtype) && form.binds == Binding::sum;
  const Binding first = is_index_sum ? Binding::product : form.first;
  if (use.prim == Prim::add && form.binds == Binding::sum && operands[1].number.value_or(0) < 0)
    return {fmt::format("{} - {}", wrapped_below(operands[0], first), -*operands[1].number), type, 0,
            Binding::sum};
  fmt::dynamic_format_arg_store<fmt::format_context> args;
  for (std::size_t i = 0; i < operands.size(); ++i)
    args.push_back(wrapped_below(operands[i], i == 0 ? first : form.others));
  std::string text = fmt::vformat(form.text, args);
  // Bitwise operators promote narrow integers to int.
  const bool bitwise = use.prim == Prim::bit_and || use.prim == Prim::bit_or || use.prim == Prim::bit_xor ||
                       use.prim == Prim::bit_not;
  if (bitwise && (use.dtype == DType::u8 || use.dtype == DType::i8))
    return {fmt::format("{}({})", name(use.dtype), text), type, 0, Binding::call};
  const bool is_signed_name = form.binds == Binding::prefix && operands[0].binds == Binding::name;
  return {std::move(text), type, 0, is_signed_name ? Binding::signed_name : form.binds};
}

std::string_view prim_header(const PrimUse& use) { return of_numbers(use).header; }

}  // namespace tilewright::cuda
