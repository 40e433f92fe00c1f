// The table of primitives for CUDA, and its use.
#include "backends/cuda/print/prim_text.h"

#include "backends/cuda/print/text.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace tilewright::cuda {

using printer::Accuracy;
using tile::Prim;

namespace {

constexpr PrimText kPrimTexts[tile::kPrimCount] = {
    {Prim::add, "{0} + {1}", "add({0}, {1})", nullptr, nullptr},
    {Prim::sub, "{0} - {1}", "sub({0}, {1})", nullptr, nullptr},
    {Prim::mul, "{0} * {1}", "mul({0}, {1})", nullptr, nullptr},
    {Prim::div, "div({0}, {1})", "div({0}, {1})", "fast::div({0}, {1})", nullptr},
    {Prim::rem, "rem({0}, {1})", "rem({0}, {1})", nullptr, nullptr},
    {Prim::min, "min({0}, {1})", "min({0}, {1})", nullptr, nullptr},
    {Prim::max, "max({0}, {1})", "max({0}, {1})", nullptr, nullptr},
    {Prim::pow, "pow({0}, {1})", nullptr, nullptr, nullptr},
    {Prim::atan2, "atan2({0}, {1})", nullptr, nullptr, nullptr},
    {Prim::neg, "-{0}", "neg({0})", nullptr, nullptr},
    {Prim::abs, "abs({0})", "abs({0})", nullptr, nullptr},
    {Prim::sign, "sign({0})", "sign({0})", nullptr, nullptr},
    {Prim::floor, "floor({0})", nullptr, nullptr, nullptr},
    {Prim::ceil, "ceil({0})", nullptr, nullptr, nullptr},
    {Prim::round, "round({0})", nullptr, nullptr, nullptr},
    {Prim::trunc, "trunc({0})", nullptr, nullptr, nullptr},
    {Prim::sqrt, "sqrt({0})", nullptr, "fast::sqrt({0})", nullptr},
    {Prim::rsqrt, "rsqrt({0})", nullptr, "fast::rsqrt({0})", nullptr},
    {Prim::reciprocal, "reciprocal({0})", nullptr, "fast::reciprocal({0})", nullptr},
    {Prim::exp, "exp({0})", nullptr, "fast::exp({0})", nullptr},
    {Prim::exp2, "exp2({0})", nullptr, "fast::exp2({0})", nullptr},
    {Prim::expm1, "expm1({0})", nullptr, nullptr, nullptr},
    {Prim::log, "log({0})", nullptr, "fast::log({0})", nullptr},
    {Prim::log2, "log2({0})", nullptr, "fast::log2({0})", nullptr},
    {Prim::log1p, "log1p({0})", nullptr, nullptr, nullptr},
    {Prim::sin, "sin({0})", nullptr, nullptr, "fast::sin({0})"},
    {Prim::cos, "cos({0})", nullptr, nullptr, "fast::cos({0})"},
    {Prim::tan, "tan({0})", nullptr, nullptr, nullptr},
    {Prim::tanh, "tanh({0})", nullptr, "fast::tanh_sum({0})", "fast::tanh({0})"},
    {Prim::erf, "erf({0})", nullptr, nullptr, nullptr},
    {Prim::sigmoid, "sigmoid({0})", nullptr, "fast::sigmoid({0})", nullptr},
    {Prim::fma, "fma({0}, {1}, {2})", nullptr, nullptr, nullptr},
    {Prim::select, "{0} ? {1} : {2}", "{0} ? {1} : {2}", nullptr, nullptr},
    {Prim::eq, "{0} == {1}", "{0} == {1}", nullptr, nullptr},
    {Prim::ne, "{0} != {1}", "{0} != {1}", nullptr, nullptr},
    {Prim::lt, "{0} < {1}", "{0} < {1}", nullptr, nullptr},
    {Prim::le, "{0} <= {1}", "{0} <= {1}", nullptr, nullptr},
    {Prim::gt, "{0} > {1}", "{0} > {1}", nullptr, nullptr},
    {Prim::ge, "{0} >= {1}", "{0} >= {1}", nullptr, nullptr},
    {Prim::isnan, "isnan({0})", nullptr, nullptr, nullptr},
    {Prim::bit_and, nullptr, "{0} & {1}", nullptr, nullptr},
    {Prim::bit_or, nullptr, "{0} | {1}", nullptr, nullptr},
    {Prim::bit_xor, nullptr, "{0} ^ {1}", nullptr, nullptr},
    {Prim::bit_not, nullptr, "~{0}", nullptr, nullptr},
    {Prim::shl, nullptr, "shl({0}, {1})", nullptr, nullptr},
    {Prim::shr, nullptr, "shr({0}, {1})", nullptr, nullptr},
};

constexpr bool complete() {
  for (int i = 0; i < tile::kPrimCount; ++i) {
    const PrimText& row = kPrimTexts[i];
    const tile::PrimInfo& info = tile::kPrims[i];
    if (row.prim != info.prim) return false;
    const bool floats = info.operands != tile::PrimClass::integral;
    const bool integers = info.operands != tile::PrimClass::floating;
    if (floats != (row.wide != nullptr) || integers != (row.integer != nullptr)) return false;
  }
  return true;
}
static_assert(complete(), "kPrimTexts has one row per Prim, in order, with a text for each class it takes");

const char* chosen(const PrimUse& use) {
  const PrimText& row = prim_text(use.prim);
  if (!is_float(use.dtype)) return row.integer;
  if (use.rounded) return "rounded_mul({0}, {1})";
  if (compute_dtype(use.dtype) != DType::f32) return row.wide;
  if (use.accuracy == Accuracy::coarse && row.coarse) return row.coarse;
  if (use.accuracy != Accuracy::exact && row.fast) return row.fast;
  return row.wide;
}

// Integer operators that cannot wrap are written as C++ has them.
const char* plain_operator(Prim prim) {
  switch (prim) {
    case Prim::add:
    case Prim::sub:
    case Prim::mul:
    case Prim::neg:
      return prim_text(prim).wide;
    case Prim::div:
      return "{0} / {1}";
    case Prim::rem:
      return "{0} % {1}";
    default:
      return nullptr;
  }
}

// How tightly operands bind at least that stand without brackets, as one reads them: not (a && b) || c.
struct Brackets {
  std::string_view text;
  int left, right;
};
constexpr Brackets kBrackets[] = {{"{0} + {1}", 7, 8},  {"{0} - {1}", 7, 8},      {"{0} * {1}", 8, 9},
                                  {"{0} / {1}", 8, 9},  {"{0} % {1}", 8, 9},      {"{0} == {1}", 7, 7},
                                  {"{0} != {1}", 7, 7}, {"{0} < {1}", 7, 7},      {"{0} <= {1}", 7, 7},
                                  {"{0} > {1}", 7, 7},  {"{0} >= {1}", 7, 7},     {"{0} && {1}", 4, 4},
                                  {"{0} || {1}", 4, 4}, {"{0} ? {1} : {2}", 1, 1}};

std::optional<Brackets> brackets_of(std::string_view text) {
  for (const Brackets& b : kBrackets)
    if (b.text == text) return b;
  return std::nullopt;
}

}  // namespace

const PrimText& prim_text(Prim prim) { return kPrimTexts[static_cast<int>(prim)]; }

std::string prim_expression(const PrimUse& use, const std::vector<std::string>& operands) {
  const char* text = chosen(use);
  if (!is_float(use.dtype) && !use.wraps && plain_operator(use.prim)) text = plain_operator(use.prim);
  if (use.prim == Prim::bit_not && is_bool(use.dtype)) text = "!{0}";
  // So that comparisons become predicates: of & the compiler makes integers first.
  if (use.tests && use.prim == Prim::bit_and) text = "{0} && {1}";
  if (use.tests && use.prim == Prim::bit_or) text = "{0} || {1}";
  fmt::dynamic_format_arg_store<fmt::format_context> args;
  // Operands of operators stand in brackets unless they are plain; arguments of functions need none.
  const bool call = std::string_view(text).find("({0}") != std::string_view::npos;
  std::optional<Brackets> brackets = brackets_of(text);
  // A sum of indices stays one: behind a pointer its terms would be added to that one by one.
  if (brackets && !is_float(use.dtype) && (use.prim == Prim::add || use.prim == Prim::sub))
    brackets->left = 8;
  const auto negative = [](const std::string& o) { return o.size() > 1 && o[0] == '-'; };
  if (std::string_view(text) == "{0} + {1}" && negative(operands[1]) &&
      operands[1].find_first_not_of("0123456789", 1) == std::string::npos)
    return fmt::format("{} - {}", wrapped_below(operands[0], brackets->left), operands[1].substr(1));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& o = operands[i];
    args.push_back(call       ? o
                   : brackets ? wrapped_below(o, i == 0 ? brackets->left : brackets->right)
                              : wrapped(o));
  }
  std::string out = fmt::vformat(text, args);
  // Bitwise operators promote narrow integers to int.
  const bool bitwise = use.prim == Prim::bit_and || use.prim == Prim::bit_or || use.prim == Prim::bit_xor ||
                       use.prim == Prim::bit_not;
  if (bitwise && (use.dtype == DType::u8 || use.dtype == DType::i8))
    return fmt::format("{}({})", name(use.dtype), out);
  return out;
}

std::string prim_header(const PrimUse& use) {
  const std::string_view text = chosen(use);
  if (text.find("fast::") != std::string_view::npos) return "math_fast";
  if (text.find('(') == std::string_view::npos) return "";
  switch (use.prim) {
    case Prim::pow:
    case Prim::atan2:
    case Prim::rsqrt:
    case Prim::exp:
    case Prim::exp2:
    case Prim::expm1:
    case Prim::log:
    case Prim::log2:
    case Prim::log1p:
    case Prim::sin:
    case Prim::cos:
    case Prim::tan:
    case Prim::tanh:
    case Prim::erf:
    case Prim::sigmoid:
      return "math";
    default:
      return "arith";
  }
}

}  // namespace tilewright::cuda
