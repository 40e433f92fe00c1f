// Cursor: reads words, quotes and numbers of graph text, and says where it stands.
#pragma once

#include "ir/graph.h"
#include "ir/lexis.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tilewright::ir {

// Malformed text unwinds with this to parse(), which turns it into a Failure.
struct SyntaxError {
  std::size_t at;
  std::string message;
};

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { skip_space(); }

  std::size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  [[noreturn]] void fail(const std::string& message) const { fail_at(at_, message); }
  [[noreturn]] static void fail_at(std::size_t at, const std::string& message) {
    throw SyntaxError{at, message};
  }

  bool peek(std::string_view mark) const { return text_.substr(at_).starts_with(mark); }
  bool take(std::string_view mark) {
    if (!peek(mark)) return false;
    at_ += mark.size();
    skip_space();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) fail(fmt::format("expected '{}'", mark));
  }

  bool at_word() const { return !done() && is_word_start(text_[at_]); }
  bool at_quote() const { return peek("\""); }
  // A word, or with `allow_digits` also a plain number: the part of an SSA name after '%'.
  std::string word(const char* what, bool allow_digits = false) {
    if (!at_word() && !(allow_digits && !done() && is_digit(text_[at_])))
      fail(fmt::format("expected {}", what));
    const std::size_t begin = at_;
    while (!done() && is_word_part(text_[at_])) ++at_;
    return finish(begin);
  }
  std::string word_or_quoted(const char* what) { return at_quote() ? quoted() : word(what); }
  std::string value_name() {
    if (done() || text_[at_] != '%') fail("expected a value such as %x");
    ++at_;  // no space between % and the name
    return word("the name of a value", true);
  }
  std::string quoted();
  Index integer();
  Attr number();

 private:
  std::string finish(std::size_t begin) {
    std::string token(text_.substr(begin, at_ - begin));
    skip_space();
    return token;
  }
  void skip_space() {
    while (!done()) {
      if (peek("//")) {
        while (!done() && text_[at_] != '\n') ++at_;
      } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace tilewright::ir
