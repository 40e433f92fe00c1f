#include "backends/cuda/print/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace tilewright::cuda {

bool Text::does_nothing(std::string_view head) {
  const bool counts = head.starts_with("for (int "), asks = head.starts_with("if (");
  if (!counts && !asks) return false;
  for (std::size_t at = head.find('(') + 1; at < head.size(); ++at) {
    const char c = head[at], before = head[at - 1];
    if (c == '(' && (std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_' || before == '>'))
      return false;
  }
  return true;
}

std::size_t Text::begin_of_head() const {
  constexpr std::string_view kPragma = "#pragma unroll\n";
  return out_.ends_with(kPragma) ? out_.size() - kPragma.size() : out_.size();
}

std::string element_type(DType dtype) { return std::string(name(dtype)); }
std::string compute_type(DType dtype) { return std::string(name(compute_dtype(dtype))); }

std::string integer(Index value) {
  if (value == std::numeric_limits<Index>::min()) return "(-9223372036854775807ll - 1)";
  if (value < -2147483647 || value > 2147483647) return fmt::format("{}ll", value);
  return fmt::format("{}", value);
}

std::string literal(DType dtype, const tile::Number& number) {
  if (is_bool(dtype)) return number.i != 0 ? "true" : "false";
  if (dtype == DType::i8 || dtype == DType::u8) return fmt::format("{}({})", element_type(dtype), number.i);
  // C++ has no i32 literal of the least i32: its digits alone are an i64.
  if (dtype == DType::i32 && number.i == std::numeric_limits<std::int32_t>::min())
    return fmt::format("i32({})", integer(number.i));
  if (!is_float(dtype)) return integer(number.i);
  const bool wide = dtype == DType::f64;
  const double value = wide                     ? number.f
                       : is_narrow_float(dtype) ? round_to(dtype, number.f)
                                                : static_cast<float>(number.f);
  if (std::isnan(value)) return wide ? "f64(not_a_number())" : "not_a_number()";
  if (std::isinf(value))
    return fmt::format("{}{}", value < 0 ? "-" : "", wide ? "f64(infinity())" : "infinity()");
  std::string text = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return wide ? text : text + "f";
}

std::string stored_literal(DType dtype, const tile::Number& number) {
  if (!is_narrow_float(dtype)) {
    if (dtype == DType::i64) return fmt::format("i64({})", integer(number.i));
    return dtype == DType::i8 || dtype == DType::u8
               ? literal(dtype, number)
               : fmt::format("{}({})", element_type(dtype),
                             is_float(dtype) || is_bool(dtype) ? literal(dtype, number) : integer(number.i));
  }
  std::uint16_t bits = 0;
  store_f64(&bits, dtype, number.f);
  return fmt::format("{}{{{:#x}}}", element_type(dtype), bits);
}

std::string identifier(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = fmt::format("v{}", out);
  return printer::is_keyword(out) || is_reserved(out) ? out + "_" : out;
}

std::string wrapped(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':' ||
                       depth > 0 || c == ')' || c == ']' || c == '}';
    if (!plain) return fmt::format("({})", text);
  }
  // "(a) + (b)" was caught above; "(a)" alone and "f(a)" are whole.
  return text;
}

int binding(const std::string& text) {
  constexpr std::pair<std::string_view, int> kOperators[] = {
      {"?", 0},  {":", 0},  {"||", 1}, {"&&", 2}, {"|", 3}, {"^", 3},  {"&", 3},
      {"==", 4}, {"!=", 4}, {"<", 5},  {"<=", 5}, {">", 5}, {">=", 5}, {"<<", 6},
      {">>", 6}, {"+", 7},  {"-", 7},  {"*", 8},  {"/", 8}, {"%", 8}};
  int least = 9, depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != ' ' || depth > 0) continue;
    for (const auto& [sign, binds] : kOperators)
      if (std::string_view(text).substr(begin, i - begin) == sign) least = std::min(least, binds);
    begin = i + 1;
  }
  return least;
}

std::string wrapped_below(const std::string& text, int least) {
  return binding(text) < least ? fmt::format("({})", text) : text;
}

}  // namespace tilewright::cuda
