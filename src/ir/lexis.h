// What counts as a word in graph text: shared by printer and parser so that they agree.
#pragma once

#include <string_view>

namespace tilewright::ir {

constexpr bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word_part(char c) { return is_word_start(c) || is_digit(c) || c == '.'; }

// A word can be written without quotes.
constexpr bool is_word(std::string_view text) {
  if (text.empty() || !is_word_start(text[0])) return false;
  for (char c : text)
    if (!is_word_part(c)) return false;
  return true;
}

// Words that read as numbers.
constexpr bool is_number_word(std::string_view text) { return text == "inf" || text == "nan"; }

}  // namespace tilewright::ir
