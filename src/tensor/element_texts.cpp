// NumPy's forms of numbers (numpy/_core/arrayprint.py and the scalars' str()), over the shortest digits that
// std::to_chars finds. bf16 and f8, which NumPy does not have, are printed as the f32 that they are: of their
// own few digits 448 would be 450.
#include "tensor/element_texts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace tilewright::detail {

namespace {

// |x| = d.ddd · 10^exponent
struct Decimal {
  std::string digits;
  int exponent = 0;
};

// "1.25e+02"
Decimal parsed(std::string_view scientific) {
  const std::size_t e = scientific.find('e');
  Decimal out;
  for (char c : scientific.substr(0, e))
    if (c != '.') out.digits += c;
  const std::string_view exponent = scientific.substr(e + 1 + (scientific[e + 1] == '+' ? 1 : 0));
  std::from_chars(exponent.begin(), exponent.end(), out.exponent);
  return out;
}

// Room for |x| <= 1.8e308 with as many digits as PrintOptions allow: 309 before the point, 100 behind it.
using Buffer = std::array<char, 512>;
template <class... Form>
std::string text_of(auto magnitude, Form... form) {
  Buffer buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, form...).ptr};
}

// The fewest digits that are nearer to x than to any other number of its type.
Decimal shortest(double magnitude, DType dtype) {
  constexpr auto kForm = std::chars_format::scientific;
  if (dtype == DType::f64) return parsed(text_of(magnitude, kForm));
  if (dtype != DType::f16) return parsed(text_of(static_cast<float>(magnitude), kForm));
  std::string text;
  for (int digits = 0; digits <= 17; ++digits) {
    text = text_of(magnitude, kForm, digits);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (round_to(dtype, back) == magnitude) break;
  }
  return parsed(text);
}

void trim_zeros(std::string& fraction) { fraction.erase(fraction.find_last_not_of('0') + 1); }

// What stands before the point, sign included, behind it, and behind the e, sign included.
struct Parts {
  std::string whole, fraction, exponent;
};

Parts positional(double x, DType dtype, int precision) {
  const std::string sign = std::signbit(x) ? "-" : "";
  const auto [digits, exponent] = shortest(std::fabs(x), dtype);
  const int behind = std::max(0, static_cast<int>(digits.size()) - 1 - exponent);
  if (precision >= 0 && behind > precision) {
    const std::string rounded = text_of(std::fabs(x), std::chars_format::fixed, precision);
    const std::size_t point = std::min(rounded.find('.'), rounded.size());
    Parts out{sign + rounded.substr(0, point), precision > 0 ? rounded.substr(point + 1) : "", ""};
    trim_zeros(out.fraction);
    return out;
  }
  if (exponent < 0)
    return {sign + "0", std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits, ""};
  const auto before = static_cast<std::size_t>(exponent) + 1;
  std::string whole = digits.substr(0, before);
  whole.append(before - whole.size(), '0');
  std::string fraction = digits.size() > before ? digits.substr(before) : "";
  trim_zeros(fraction);  // the only digit of 0.0 is none
  return {sign + whole, fraction, ""};
}

Parts scientific_parts(double x, const Decimal& d) {
  const std::string power = std::to_string(std::abs(d.exponent));
  return {(std::signbit(x) ? "-" : "") + d.digits.substr(0, 1), d.digits.substr(1),
          (d.exponent < 0 ? "-" : "+") + std::string(power.size() < 2 ? 1 : 0, '0') + power};
}

// x rounded to so many digits behind the point.
Parts scientific_exactly(double x, int digits) {
  return scientific_parts(x, parsed(text_of(std::fabs(x), std::chars_format::scientific, digits)));
}

Parts scientific(double x, DType dtype, int precision) {
  const Decimal d = shortest(std::fabs(x), dtype);
  const bool rounds = precision >= 0 && static_cast<int>(d.digits.size()) - 1 > precision;
  Parts out = rounds ? scientific_exactly(x, precision) : scientific_parts(x, d);
  trim_zeros(out.fraction);
  return out;
}

std::string padded_left(const std::string& text, std::size_t width, char with = ' ') {
  return std::string(width - std::min(width, text.size()), with) + text;
}
std::string padded_right(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

std::string not_finite(double x) { return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf"; }

// The least number that is written with an exponent: where a type's digits end (10^digits10), of f64 `most`.
double large(DType dtype, double most) {
  constexpr double kF16 = 1e3, kF32 = 1e6;
  return dtype == DType::f64 ? most : dtype == DType::f16 ? kF16 : kF32;
}

// Whether the numbers spread so far that they are written with exponents. NumPy compares in their own type.
bool wants_exponents(std::span<const double> numbers, DType dtype) {
  double least = 0, most = 0;
  for (double x : numbers) {
    const double magnitude = std::fabs(x);
    if (!std::isfinite(x) || x == 0) continue;
    least = least == 0 ? magnitude : std::min(least, magnitude);
    most = std::max(most, magnitude);
  }
  if (most == 0) return false;
  const DType compares = dtype == DType::f64 || dtype == DType::f16 ? dtype : DType::f32;
  const auto rounded = [&](double v) { return round_to(compares, v); };
  return most >= large(dtype, 1e8) || least < rounded(1e-4) || rounded(most / least) > 1000;
}

std::vector<std::string> float_texts(std::span<const double> numbers, DType dtype, int precision) {
  const bool exponents = wants_exponents(numbers, dtype);
  std::vector<Parts> parts;
  parts.reserve(numbers.size());
  std::size_t before = 0, behind = 0, power = 0, special = 0;
  for (double x : numbers) {
    Parts& p = parts.emplace_back();
    if (!std::isfinite(x)) {
      special = std::max(special, not_finite(x).size());
      continue;
    }
    p = exponents ? scientific(x, dtype, precision) : positional(x, dtype, precision);
    before = std::max(before, p.whole.size());
    behind = std::max(behind, p.fraction.size());
    if (exponents) power = std::max(power, p.exponent.size() - 1);
  }
  const std::size_t tail = 1 + behind + (exponents ? 2 + power : 0);  // from the point on
  if (special > tail) before = std::max(before, special - tail);
  std::vector<std::string> texts;
  texts.reserve(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Parts& p = parts[i];
    // A number of fewer digits than others is filled up with its own further digits, not with zeros.
    if (exponents && std::isfinite(numbers[i]) && p.fraction.size() < behind)
      p = scientific_exactly(numbers[i], static_cast<int>(behind));
    if (!std::isfinite(numbers[i]))
      texts.push_back(padded_left(not_finite(numbers[i]), before + tail));
    else if (exponents)
      texts.push_back(padded_left(p.whole, before) + '.' + p.fraction + 'e' + p.exponent[0] +
                      padded_left(p.exponent.substr(1), power, '0'));
    else
      texts.push_back(padded_left(p.whole, before) + '.' + padded_right(p.fraction, behind));
  }
  return texts;
}

}  // namespace

std::vector<std::string> element_texts(const char* data, DType dtype, std::span<const Index> shown,
                                       int precision) {
  const std::size_t size = size_bytes(dtype);
  const auto place = [&](Index i) { return data + static_cast<std::size_t>(i) * size; };
  if (is_float(dtype)) {
    std::vector<double> numbers;
    numbers.reserve(shown.size());
    for (Index i : shown) numbers.push_back(load_f64(place(i), dtype));
    return float_texts(numbers, dtype, precision);
  }
  std::vector<std::string> texts;
  texts.reserve(shown.size());
  std::size_t width = is_bool(dtype) ? 5 : 0;  // of False, though all be True
  for (Index i : shown) {
    const std::int64_t value = load_i64(place(i), dtype);
    texts.push_back(is_bool(dtype) ? value != 0 ? "True" : "False" : std::to_string(value));
    width = std::max(width, texts.back().size());
  }
  for (std::string& text : texts) text = padded_left(text, width);
  return texts;
}

std::string scalar_text(const char* data, DType dtype) {
  if (is_bool(dtype)) return load_i64(data, dtype) != 0 ? "True" : "False";
  if (!is_float(dtype)) return std::to_string(load_i64(data, dtype));
  const double x = load_f64(data, dtype);
  if (!std::isfinite(x)) return not_finite(x);
  constexpr double kLeast = 1e-4, kMost = 1e16;  // Python's own
  if (x == 0 || (std::fabs(x) >= kLeast && std::fabs(x) < large(dtype, kMost))) {
    const Parts p = positional(x, dtype, -1);
    return p.whole + '.' + (p.fraction.empty() ? "0" : p.fraction);
  }
  const Parts p = scientific(x, dtype, -1);
  return p.whole + (p.fraction.empty() ? "" : '.' + p.fraction) + 'e' + p.exponent;
}

}  // namespace tilewright::detail
