// Quotes with escapes, and numbers.
#include "ir/cursor.h"

#include <charconv>
#include <limits>

namespace tilewright::ir {

namespace {
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string Cursor::quoted() {
  const std::size_t begin = at_++;
  std::string out;
  for (;; ++at_) {
    if (done() || text_[at_] == '\n') fail_at(begin, "the quote is not closed");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') {
      out += text_[at_];
      continue;
    }
    const std::string_view escape = text_.substr(at_ + 1, 3);
    if (escape.starts_with('"') || escape.starts_with('\\')) {
      out += escape[0];
      at_ += 1;
    } else if (escape.size() == 3 && escape[0] == 'x' && hex_digit(escape[1]) >= 0 &&
               hex_digit(escape[2]) >= 0) {
      out += static_cast<char>(hex_digit(escape[1]) * 16 + hex_digit(escape[2]));
      at_ += 3;
    } else {
      fail("unknown escape, known are \\\" \\\\ \\xNN");
    }
  }
  ++at_;
  skip_space();
  return out;
}

Index Cursor::integer() {
  const std::size_t begin = at_;
  const Attr value = number();
  if (const auto* i = std::get_if<Index>(&value)) return *i;
  fail_at(begin, "expected an integer");
}

// 12 and -3 are integers; 0.5, 1e9, inf, -inf and nan are reals.
Attr Cursor::number() {
  const std::size_t begin = at_;
  if (peek("-")) ++at_;
  if (at_word()) {
    const std::string token = word("a number");
    const double sign = text_[begin] == '-' ? -1 : 1;
    if (token == "inf") return sign * std::numeric_limits<double>::infinity();
    if (token == "nan") return std::numeric_limits<double>::quiet_NaN();
    fail_at(begin, "expected a number");
  }
  bool real = false;
  while (!done()) {
    const char c = text_[at_];
    const bool exponent_sign = (c == '+' || c == '-') && text_[at_ - 1] == 'e';
    if (!is_digit(c) && c != '.' && c != 'e' && !exponent_sign) break;
    real = real || !is_digit(c);
    ++at_;
  }
  const std::string token = finish(begin);
  const char* end = token.data() + token.size();
  Index i = 0;
  double d = 0;
  const auto read = real ? std::from_chars(token.data(), end, d) : std::from_chars(token.data(), end, i);
  if (read.ec != std::errc{} || read.ptr != end) fail_at(begin, "expected a number");
  return real ? Attr(d) : Attr(i);
}

}  // namespace tilewright::ir
