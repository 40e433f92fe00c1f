// Amount: a number that is known, or the text of one that the kernel computes. Sum: what is made of them.
#pragma once

#include "backends/cpu/text/code.h"

#include <optional>
#include <string>
#include <utility>

namespace tilewright::cpu {

// Indices, distances in elements, counts of them. Whoever prints asks for the number; nobody looks at the
// text.
class Amount {
 public:
  Amount(Index number = 0)  // NOLINT(google-explicit-constructor): numbers stand beside texts
      : number_(number), text_(int_text(number)) {}
  // A name, a call, or what stands in brackets.
  static Amount named(std::string text) { return {std::nullopt, std::move(text), false}; }
  // What needs brackets as a factor.
  static Amount expression(std::string text) { return {std::nullopt, std::move(text), true}; }
  // A number that has a text of its own, as one with a sign that stands in brackets.
  static Amount literal(Index number, std::string text) { return {number, std::move(text), false}; }

  const std::optional<Index>& number() const { return number_; }
  bool is(Index v) const { return number_ == v; }
  const std::string& str() const { return text_; }
  std::string factor() const { return has_operators_ ? "(" + text_ + ")" : text_; }
  friend bool operator==(const Amount&, const Amount&) = default;

 private:
  Amount(std::optional<Index> number, std::string text, bool has_operators)
      : number_(number), text_(std::move(text)), has_operators_(has_operators) {}

  std::optional<Index> number_;
  std::string text_;
  bool has_operators_ = false;  // outside of brackets
};

// "a + 2 * b": a sum of products written without what is zero or one.
class Sum {
 public:
  Sum& add(const Amount& term, const Amount& factor = 1);
  const Amount& total() const { return total_; }

 private:
  Amount total_;
};

}  // namespace tilewright::cpu
