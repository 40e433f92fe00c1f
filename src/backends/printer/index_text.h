// Index arithmetic as text, folded while it is composed: numbers are computed, zeros and ones left out, and
// brackets stand only where C++ needs them. Whoever brings a text says how it binds. For positions and sizes,
// which do not wrap.
#pragma once

#include <tilewright/base/shape.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::printer {

class IndexText {
 public:
  // A name, a number or a call binds tightest, then products, then sums and what begins with a sign.
  enum class Binding : unsigned char { sum, product, atom };
  IndexText(Index number = 0);  // NOLINT(google-explicit-constructor): numbers stand beside texts
  IndexText(int number) : IndexText(Index{number}) {}  // NOLINT(google-explicit-constructor)
  // A name or a call.
  IndexText(std::string name) : text_(std::move(name)) {}        // NOLINT(google-explicit-constructor)
  IndexText(const char* name) : IndexText(std::string(name)) {}  // NOLINT(google-explicit-constructor)
  static IndexText expression(std::string text, Binding binding) { return {std::move(text), binding, false}; }

  const std::string& str() const { return text_; }
  const std::optional<Index>& number() const { return number_; }
  bool is(Index value) const { return number_ == value; }
  // The text as it stands behind a plus, where a sign would be hard to read.
  std::string added() const { return begins_with_sign_ ? "(" + text_ + ")" : text_; }

  friend IndexText operator+(const IndexText& a, const IndexText& b);
  friend IndexText operator-(const IndexText& a, const IndexText& b);
  friend IndexText operator*(const IndexText& a, const IndexText& b);
  // Quotient and remainder of numbers that are not negative.
  friend IndexText operator/(const IndexText& a, const IndexText& b);
  friend IndexText operator%(const IndexText& a, const IndexText& b);

 private:
  IndexText(std::string text, Binding binding, bool begins_with_sign)
      : text_(std::move(text)), binding_(binding), begins_with_sign_(begins_with_sign) {}
  std::string inside(Binding around) const;  // in brackets where it binds more loosely

  std::string text_;
  std::optional<Index> number_;
  Binding binding_ = Binding::atom;
  bool begins_with_sign_ = false;
};

IndexText product(const std::vector<IndexText>& factors);

}  // namespace tilewright::printer
