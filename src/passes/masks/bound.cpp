// Folding: what ranges decide is not computed.
#include "passes/masks/bound.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

Index floor_of(Index a, Index divisor) { return a >= 0 ? a / divisor : -((-a + divisor - 1) / divisor); }

}  // namespace

Bound Bound::make(Kind kind, IndexRange range, std::vector<Bound> parts, Index number) {
  if (range.low == range.high) return {range.low};
  Bound b;
  b.kind_ = kind;
  b.range_ = range;
  b.number_ = number;
  b.parts_ = std::make_shared<const std::vector<Bound>>(std::move(parts));
  return b;
}

Bound Bound::start(int variable, Index last) {
  if (last <= 0) return 0;
  Bound b = make(Kind::start, {0, last}, {});
  b.place_ = variable;
  return b;
}

Bound Bound::value(int expr) {
  Bound b = make(Kind::value, {-kMostValue, kMostValue}, {});
  b.place_ = expr;
  return b;
}

bool operator==(const Bound& a, const Bound& b) {
  if (a.kind_ != b.kind_ || a.place_ != b.place_ || a.number_ != b.number_) return false;
  return a.parts_ == b.parts_ || (a.parts_ && b.parts_ && *a.parts_ == *b.parts_);
}

// Constants stand last and are added up.
Bound operator+(const Bound& a, const Bound& b) {
  if (a.is_constant() && !b.is_constant()) return b + a;
  const bool constant = b.is_constant();
  if (constant && b.range_.low == 0) return a;
  if (constant && a.kind_ == Bound::Kind::sum && a.parts()[1].is_constant())
    return a.parts()[0] + Bound(a.parts()[1].range_.low + b.range_.low);
  return Bound::make(Bound::Kind::sum, {a.range_.low + b.range_.low, a.range_.high + b.range_.high}, {a, b});
}

Bound operator*(const Bound& a, Index factor) {
  if (factor == 1) return a;
  if (a.kind_ == Bound::Kind::scaled) return a.parts()[0] * (a.number_ * factor);
  if (a.kind_ == Bound::Kind::sum) return a.parts()[0] * factor + a.parts()[1] * factor;
  const Index x = a.range_.low * factor, y = a.range_.high * factor;
  return Bound::make(Bound::Kind::scaled, {std::min(x, y), std::max(x, y)}, {a}, factor);
}

Bound floor_div(const Bound& a, Index divisor) {
  if (divisor == 1) return a;
  return Bound::make(Bound::Kind::floor_div,
                     {floor_of(a.range_.low, divisor), floor_of(a.range_.high, divisor)}, {a}, divisor);
}

Bound min(const Bound& a, const Bound& b) {
  if (a == b || a.range_.high <= b.range_.low) return a;
  if (b.range_.high <= a.range_.low) return b;
  return Bound::make(Bound::Kind::min,
                     {std::min(a.range_.low, b.range_.low), std::min(a.range_.high, b.range_.high)}, {a, b});
}

Bound max(const Bound& a, const Bound& b) {
  if (a == b || a.range_.low >= b.range_.high) return a;
  if (b.range_.low >= a.range_.high) return b;
  return Bound::make(Bound::Kind::max,
                     {std::max(a.range_.low, b.range_.low), std::max(a.range_.high, b.range_.high)}, {a, b});
}

Bound choose(const Bound& test, const Bound& a, const Bound& b) {
  if (a == b || test.range_.low >= 0) return a;
  if (test.range_.high < 0) return b;
  return Bound::make(Bound::Kind::choose,
                     {std::min(a.range_.low, b.range_.low), std::max(a.range_.high, b.range_.high)},
                     {test, a, b});
}

std::optional<Index> Bound::evaluate(const std::vector<Index>& starts) const {
  if (kind_ == Kind::constant) return number_;
  if (kind_ == Kind::start) return starts[static_cast<std::size_t>(place_)];
  if (kind_ == Kind::value) return std::nullopt;
  std::vector<Index> of;
  for (const Bound& p : parts()) {
    const std::optional<Index> known = p.evaluate(starts);
    if (!known) return std::nullopt;
    of.push_back(*known);
  }
  switch (kind_) {
    case Kind::sum:
      return of[0] + of[1];
    case Kind::scaled:
      return of[0] * number_;
    case Kind::floor_div:
      return floor_of(of[0], number_);
    case Kind::min:
      return std::min(of[0], of[1]);
    case Kind::max:
      return std::max(of[0], of[1]);
    default:
      return of[of[0] >= 0 ? 1 : 2];
  }
}

}  // namespace tilewright::passes
