// One pass over the text, one token ahead.
#include "tile/lexer.h"

#include <fmt/format.h>

namespace tilewright::tile {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}
// "1", "-0.5", "1e-7", "-inf": a sign only in front or after e.
std::size_t number_length(std::string_view text) {
  std::size_t n = text[0] == '-' ? 1 : 0;
  while (n < text.size() &&
         (is_word(text[n]) || ((text[n] == '-' || text[n] == '+') && n > 0 && text[n - 1] == 'e')))
    ++n;
  return n;
}
}  // namespace

SyntaxError::SyntaxError(const Token& at, const std::string& message)
    : std::runtime_error(fmt::format("{}:{}: {}", at.line, at.column, message)) {}

Lexer::Lexer(std::string_view text) : size_(text.size()), rest_(text) { advance(); }

Token Lexer::take() {
  const Token token = next_;
  advance();
  return token;
}

bool Lexer::at(std::string_view text) const {
  return (next_.kind == Token::Kind::punctuation || next_.kind == Token::Kind::name) && next_.text == text;
}

bool Lexer::take_if(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

Token Lexer::expect(std::string_view text) {
  if (!at(text)) fail(fmt::format("expected '{}'", text));
  return take();
}

Token Lexer::expect(Token::Kind kind, const char* what) {
  if (next_.kind != kind) fail(fmt::format("expected {}", what));
  return take();
}

void Lexer::fail(const std::string& message) const {
  constexpr std::size_t kShown = 40;
  const std::string found =
      next_.kind == Token::Kind::end ? "the end" : fmt::format("'{}'", next_.text.substr(0, kShown));
  throw SyntaxError(next_, fmt::format("{}, found {}", message, found));
}

void Lexer::skip_blank() {
  while (!rest_.empty()) {
    if (rest_[0] == '\n') {
      ++line_;
      column_ = 1;
      rest_.remove_prefix(1);
    } else if (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r') {
      ++column_;
      rest_.remove_prefix(1);
    } else if (rest_.substr(0, 2) == "//") {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_blank();
  next_ = {Token::Kind::end, {}, line_, column_};
  if (rest_.empty()) return;
  const char c = rest_[0];
  std::size_t length = 1, sigil = 0;
  if (c == '%' || c == '@') {
    sigil = 1;
    next_.kind = c == '%' ? Token::Kind::value : Token::Kind::kernel;
    while (length < rest_.size() && is_word(rest_[length])) ++length;
  } else if (is_digit(c) || c == '-') {
    next_.kind = Token::Kind::number;
    length = number_length(rest_);
  } else if (is_word(c)) {
    next_.kind = Token::Kind::name;
    while (length < rest_.size() && is_word(rest_[length])) ++length;
  } else {
    next_.kind = Token::Kind::punctuation;
  }
  next_.text = rest_.substr(sigil, length - sigil);
  rest_.remove_prefix(length);
  column_ += static_cast<int>(length);
}

}  // namespace tilewright::tile
