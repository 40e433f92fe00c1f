// Index arithmetic as text, folded while it is composed: numbers are computed, zeros and ones left out, and
// brackets stand only where C++ needs them. For positions and sizes, which do not wrap.
#pragma once

#include <tilewright/base/shape.h>

#include <optional>
#include <string>
#include <vector>

namespace tilewright::printer {

class IndexText {
 public:
  IndexText(Index number = 0);  // NOLINT(google-explicit-constructor): numbers stand beside texts
  IndexText(int number) : IndexText(Index{number}) {}  // NOLINT(google-explicit-constructor)
  // An expression: a name, a number or a call binds tightest, then products, then sums.
  IndexText(const std::string& text);                            // NOLINT(google-explicit-constructor)
  IndexText(const char* text) : IndexText(std::string(text)) {}  // NOLINT(google-explicit-constructor)

  const std::string& str() const { return text_; }
  const std::optional<Index>& number() const { return number_; }
  bool is(Index value) const { return number_ == value; }

  friend IndexText operator+(const IndexText& a, const IndexText& b);
  friend IndexText operator-(const IndexText& a, const IndexText& b);
  friend IndexText operator*(const IndexText& a, const IndexText& b);
  // Quotient and remainder of numbers that are not negative.
  friend IndexText operator/(const IndexText& a, const IndexText& b);
  friend IndexText operator%(const IndexText& a, const IndexText& b);

 private:
  enum class Binding : unsigned char { sum, product, atom };
  static IndexText expression(std::string text, Binding binding);
  std::string inside(Binding around) const;  // in brackets where it binds more loosely

  std::string text_;
  std::optional<Index> number_;
  Binding binding_ = Binding::atom;
};

IndexText product(const std::vector<IndexText>& factors);

}  // namespace tilewright::printer
