// Literals, names and brackets of C++.
#include "backends/cuda/print/text.h"

#include <cctype>
#include <cmath>
#include <limits>

namespace tilewright::cuda {

std::string maybe_indexed(DType type, bool indexed) {
  return indexed ? fmt::format("Indexed<{}>", type) : fmt::format("{}", type);
}

std::string integer(Index value) {
  if (value == std::numeric_limits<Index>::min()) return "(-9223372036854775807ll - 1)";
  if (value < -2147483647 || value > 2147483647) return fmt::format("{}ll", value);
  return fmt::format("{}", value);
}

std::string literal(DType dtype, const tile::Number& number) {
  if (is_bool(dtype)) return number.i != 0 ? "true" : "false";
  if (dtype == DType::i8 || dtype == DType::u8) return fmt::format("{}({})", dtype, number.i);
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
               : fmt::format("{}({})", dtype,
                             is_float(dtype) || is_bool(dtype) ? literal(dtype, number) : integer(number.i));
  }
  std::uint16_t bits = 0;
  store_f64(&bits, dtype, number.f);
  return fmt::format("{}{{{:#x}}}", dtype, bits);
}

std::string identifier(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = fmt::format("v{}", out);
  return printer::is_keyword(out) || is_reserved(out) ? out + "_" : out;
}

TypedText literal_text(DType dtype, const tile::Number& number, DType type) {
  TypedText e{literal(dtype, number), type};
  const bool is_plain = dtype == DType::i32 || dtype == DType::i64;  // others name their type
  if (is_plain && number.i >= -2147483647 && number.i <= 2147483647) e.number = number.i;
  const bool has_sign = is_float(dtype) ? std::signbit(number.f) : e.number.value_or(0) < 0;
  if (has_sign) e.binds = Binding::signed_name;
  return e;
}

printer::IndexText index_text(const TypedText& e) {
  using printer::IndexText;
  if (e.number) return *e.number;
  if (e.binds < Binding::product) return IndexText::expression(e.text, IndexText::Binding::sum);
  if (e.binds == Binding::product) return IndexText::expression(e.text, IndexText::Binding::product);
  return wrapped(e);
}

std::string wrapped_below(const TypedText& e, Binding least) {
  return e.binds < least ? fmt::format("({})", e.text) : e.text;
}

std::string wrapped(const TypedText& e) { return wrapped_below(e, Binding::call); }

}  // namespace tilewright::cuda
