// The words of tile text: names, %values, @kernels, numbers and punctuation; // starts a comment.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tilewright::tile {

struct Token {
  enum class Kind : unsigned char { end, name, value, kernel, number, punctuation };
  Kind kind = Kind::end;
  std::string_view text;  // without the sigil; numbers with their sign
  int line = 1;
  int column = 1;
};

// Thrown inside the parser only; parse() turns it into a Failure.
struct SyntaxError : std::runtime_error {
  SyntaxError(const Token& at, const std::string& message);
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);  // the text must outlive the tokens
  std::size_t text_size() const { return size_; }
  const Token& peek() const { return next_; }
  Token take();
  // The next token if it is this punctuation or name.
  bool take_if(std::string_view text);
  Token expect(std::string_view text);
  Token expect(Token::Kind kind, const char* what);
  bool at(std::string_view text) const;
  [[noreturn]] void fail(const std::string& message) const;  // at the next token

 private:
  void advance();
  void skip_blank();
  std::size_t size_;
  std::string_view rest_;
  Token next_;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace tilewright::tile
