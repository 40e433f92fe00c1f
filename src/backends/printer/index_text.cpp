#include "backends/printer/index_text.h"

#include <fmt/format.h>

#include <limits>

namespace tilewright::printer {

namespace {

constexpr Index kMostNegated = std::numeric_limits<Index>::max();

// C++ takes a decimal number that does not fit an int for a long, which is not the i64 of the texts.
std::string digits(Index value) {
  constexpr Index kMost = std::numeric_limits<int>::max();
  if (value == std::numeric_limits<Index>::min()) return fmt::format("({}ll - 1)", value + 1);
  return fmt::format("{}{}", value, value < -kMost || value > kMost ? "ll" : "");
}

}  // namespace

IndexText::IndexText(Index number) : text_(digits(number)), number_(number), begins_with_sign_(number < 0) {
  if (number < 0) binding_ = Binding::sum;
}

std::string IndexText::inside(Binding around) const {
  return binding_ < around ? fmt::format("({})", text_) : text_;
}

IndexText operator+(const IndexText& a, const IndexText& b) {
  if (a.number_ && b.number_) return *a.number_ + *b.number_;
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  if (b.number_ && *b.number_ < 0 && *b.number_ > -kMostNegated) return a - IndexText(-*b.number_);
  // A sum on the right stays one: what it is with the left side's terms alone might not fit.
  return {fmt::format("{} + {}", a.text_, b.inside(IndexText::Binding::product)), IndexText::Binding::sum,
          a.begins_with_sign_};
}

IndexText operator-(const IndexText& a, const IndexText& b) {
  if (a.number_ && b.number_) return *a.number_ - *b.number_;
  if (b.is(0)) return a;
  if (b.number_ && *b.number_ < 0 && *b.number_ > -kMostNegated) return a + IndexText(-*b.number_);
  return {fmt::format("{} - {}", a.text_, b.inside(IndexText::Binding::product)), IndexText::Binding::sum,
          a.begins_with_sign_};
}

IndexText operator*(const IndexText& a, const IndexText& b) {
  if (a.number_ && b.number_) return *a.number_ * *b.number_;
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  using Binding = IndexText::Binding;
  // Quotients are rounded: those on the right stand in brackets.
  return IndexText::expression(fmt::format("{} * {}", a.inside(Binding::product), b.inside(Binding::atom)),
                               Binding::product);
}

IndexText operator/(const IndexText& a, const IndexText& b) {
  if (a.number_ && b.number_ && *b.number_ > 0) return *a.number_ / *b.number_;
  if (a.is(0) || b.is(1)) return a;
  using Binding = IndexText::Binding;
  return IndexText::expression(fmt::format("{} / {}", a.inside(Binding::product), b.inside(Binding::atom)),
                               Binding::product);
}

IndexText operator%(const IndexText& a, const IndexText& b) {
  if (a.number_ && b.number_ && *b.number_ > 0) return *a.number_ % *b.number_;
  if (a.is(0) || b.is(1)) return 0;
  using Binding = IndexText::Binding;
  return IndexText::expression(fmt::format("{} % {}", a.inside(Binding::product), b.inside(Binding::atom)),
                               Binding::product);
}

IndexText product(const std::vector<IndexText>& factors) {
  IndexText all = 1;
  for (const IndexText& f : factors) all = all * f;
  return all;
}

}  // namespace tilewright::printer
