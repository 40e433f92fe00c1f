// Arithmetic and simplification of index expressions.
#include "passes/nest/index_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <numeric>
#include <optional>
#include <set>

namespace tilewright::passes {

namespace {

std::strong_ordering order(const IndexExpr& a, const IndexExpr& b);

// Variables first, then divisions and remainders by structure: never by address.
std::strong_ordering order_atoms(const IndexExpr::Term& a, const IndexExpr::Term& b) {
  if (!a.div_mod || !b.div_mod) {
    if (a.div_mod || b.div_mod) return a.div_mod ? std::strong_ordering::greater : std::strong_ordering::less;
    return a.variable <=> b.variable;
  }
  if (a.div_mod == b.div_mod) return std::strong_ordering::equal;
  if (auto c = a.div_mod->is_division <=> b.div_mod->is_division; c != 0) return c;
  if (auto c = a.div_mod->divisor <=> b.div_mod->divisor; c != 0) return c;
  return order(a.div_mod->inner, b.div_mod->inner);
}

std::strong_ordering order(const IndexExpr& a, const IndexExpr& b) {
  if (auto c = a.constant() <=> b.constant(); c != 0) return c;
  if (auto c = a.terms().size() <=> b.terms().size(); c != 0) return c;
  for (std::size_t i = 0; i < a.terms().size(); ++i) {
    if (auto c = order_atoms(a.terms()[i], b.terms()[i]); c != 0) return c;
    if (auto c = a.terms()[i].factor <=> b.terms()[i].factor; c != 0) return c;
  }
  return std::strong_ordering::equal;
}

Index floor_div_constant(Index a, Index b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

IndexExpr IndexExpr::variable(int v) {
  IndexExpr e;
  e.add({1, v, nullptr});
  return e;
}

void IndexExpr::add(const Term& term) {
  auto at = std::lower_bound(terms_.begin(), terms_.end(), term,
                             [](const Term& a, const Term& b) { return order_atoms(a, b) < 0; });
  if (at != terms_.end() && order_atoms(*at, term) == 0) {
    at->factor += term.factor;
    if (at->factor == 0) terms_.erase(at);
  } else if (term.factor != 0) {
    terms_.insert(at, term);
  }
}

bool IndexExpr::is_affine() const {
  return std::none_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.div_mod != nullptr; });
}

std::size_t IndexExpr::divisions() const {
  std::size_t count = 0;
  for (const Term& t : terms_) count += t.div_mod ? t.div_mod->divisions : 0;
  return count;
}

Index IndexExpr::factor(int v) const {
  for (const Term& t : terms_)
    if (!t.div_mod && t.variable == v) return t.factor;
  return 0;
}

bool IndexExpr::depends_on(int v) const {
  return std::any_of(terms_.begin(), terms_.end(), [v](const Term& t) {
    return t.div_mod ? t.div_mod->inner.depends_on(v) : t.variable == v;
  });
}

int IndexExpr::single_variable() const {
  return constant_ == 0 && terms_.size() == 1 && !terms_[0].div_mod && terms_[0].factor == 1
             ? terms_[0].variable
             : -1;
}

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  IndexExpr sum = a;
  sum.constant_ += b.constant_;
  for (const IndexExpr::Term& t : b.terms_) sum.add(t);
  sum.join_parts();
  return sum;
}

void IndexExpr::join_parts() {
  for (const Term& rest : terms_) {
    if (!rest.div_mod || rest.div_mod->is_division) continue;
    const auto quotient = std::find_if(terms_.begin(), terms_.end(), [&](const Term& t) {
      return t.div_mod && t.div_mod->is_division && t.div_mod->divisor == rest.div_mod->divisor &&
             t.factor == rest.factor * t.div_mod->divisor && t.div_mod->inner == rest.div_mod->inner;
    });
    if (quotient == terms_.end()) continue;
    const IndexExpr whole = rest.div_mod->inner * rest.factor;
    const Term parts[] = {rest, *quotient};
    for (Term part : parts) {
      part.factor = -part.factor;
      add(part);
    }
    *this = *this + whole;
    return;
  }
}

IndexExpr operator*(const IndexExpr& a, Index factor) {
  if (factor == 0) return 0;
  IndexExpr product = a;
  product.constant_ *= factor;
  for (IndexExpr::Term& t : product.terms_) t.factor *= factor;
  return product;
}

bool operator==(const IndexExpr& a, const IndexExpr& b) { return order(a, b) == 0; }

IndexRange range(const IndexExpr& a, const Extents& extents) {
  IndexRange r{a.constant(), a.constant()};
  for (const IndexExpr::Term& t : a.terms()) {
    IndexRange atom;
    if (!t.div_mod) {
      atom = {0, std::max<Index>(extents[static_cast<std::size_t>(t.variable)] - 1, 0)};
    } else if (t.div_mod->is_division) {
      const IndexRange inner = range(t.div_mod->inner, extents);
      atom = {floor_div_constant(inner.low, t.div_mod->divisor),
              floor_div_constant(inner.high, t.div_mod->divisor)};
    } else {
      atom = {0, t.div_mod->divisor - 1};
    }
    r.low += t.factor * (t.factor > 0 ? atom.low : atom.high);
    r.high += t.factor * (t.factor > 0 ? atom.high : atom.low);
  }
  return r;
}

namespace {

// a = divisor * quotient + rest, term by term. The rest is never negative: tile IR's division truncates.
struct Split {
  IndexExpr quotient;
  IndexExpr rest;
};
Split split(const IndexExpr& a, Index divisor, const Extents& extents) {
  const Index q = floor_div_constant(a.constant(), divisor);
  Split s{IndexExpr(q), IndexExpr(a.constant() - q * divisor)};
  for (const IndexExpr::Term& t : a.terms()) {
    IndexExpr atom;
    if (t.div_mod) {
      atom = t.div_mod->is_division ? floor_div(t.div_mod->inner, t.div_mod->divisor, {})
                                    : remainder(t.div_mod->inner, t.div_mod->divisor, {});
    } else {
      atom = IndexExpr::variable(t.variable);
    }
    if (t.factor % divisor == 0)
      s.quotient = s.quotient + atom * (t.factor / divisor);
    else
      s.rest = s.rest + atom * t.factor;
  }
  const Index below = -floor_div_constant(range(s.rest, extents).low, divisor);
  if (below <= 0) return s;
  return {s.quotient + IndexExpr(-below), s.rest + IndexExpr(below * divisor)};
}

bool inside(const IndexExpr& a, Index divisor, const Extents& extents) {
  if (extents.empty() && !a.is_constant()) return false;
  const IndexRange r = range(a, extents);
  return r.low >= 0 && r.high < divisor;
}

// A part g of the divisor such that a = g * quotient + rest with the rest inside [0, g): what is divided then
// is the quotient, by divisor / g. So the group of a channel, (1024 * c + 32 * y + x) / 16384, is c / 16.
struct Coarser {
  Index part = 1;
  Split split;
};
std::optional<Coarser> coarser(const IndexExpr& a, Index divisor, const Extents& extents) {
  std::set<Index> parts;
  for (const IndexExpr::Term& t : a.terms()) parts.insert(std::gcd(std::abs(t.factor), divisor));
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (*part == 1 || *part == divisor) continue;
    const Split s = split(a, *part, extents);
    if (inside(s.rest, *part, extents)) return Coarser{*part, s};
  }
  return std::nullopt;
}

}  // namespace

IndexExpr floor_div(const IndexExpr& a, Index divisor, const Extents& extents) {
  if (divisor == 1) return a;
  if (!extents.empty()) {
    const Split s = split(a, divisor, extents);
    if (inside(s.rest, divisor, extents)) return s.quotient;
    if (!(s.quotient == IndexExpr(0))) return s.quotient + floor_div(s.rest, divisor, extents);
    if (const auto c = coarser(a, divisor, extents))
      return floor_div(c->split.quotient, divisor / c->part, extents);
    // (x / m) / n = x / (m n)
    if (a.constant() == 0 && a.terms().size() == 1 && a.terms()[0].factor == 1 && a.terms()[0].div_mod &&
        a.terms()[0].div_mod->is_division)
      return floor_div(a.terms()[0].div_mod->inner, a.terms()[0].div_mod->divisor * divisor, extents);
  } else if (a.is_constant()) {
    return floor_div_constant(a.constant(), divisor);
  }
  IndexExpr e;
  e.add({1, -1,
         std::make_shared<const IndexExpr::DivMod>(IndexExpr::DivMod{true, a, divisor, a.divisions() + 1})});
  return e;
}

IndexExpr remainder(const IndexExpr& a, Index divisor, const Extents& extents) {
  if (divisor == 1) return 0;
  IndexExpr inner = a;
  if (!extents.empty()) {
    inner = split(a, divisor, extents).rest;
    if (inside(inner, divisor, extents)) return inner;
    if (const auto c = coarser(inner, divisor, extents))
      return remainder(c->split.quotient, divisor / c->part, extents) * c->part + c->split.rest;
    // (x mod m) mod n = x mod n when n divides m
    if (inner.constant() == 0 && inner.terms().size() == 1 && inner.terms()[0].factor == 1 &&
        inner.terms()[0].div_mod && !inner.terms()[0].div_mod->is_division &&
        inner.terms()[0].div_mod->divisor % divisor == 0)
      return remainder(inner.terms()[0].div_mod->inner, divisor, extents);
  } else if (a.is_constant()) {
    return a.constant() - floor_div_constant(a.constant(), divisor) * divisor;
  }
  IndexExpr e;
  e.add({1, -1,
         std::make_shared<const IndexExpr::DivMod>(
             IndexExpr::DivMod{false, inner, divisor, inner.divisions() + 1})});
  return e;
}

IndexExpr substitute(const IndexExpr& a, const std::function<IndexExpr(int)>& by, const Extents& extents) {
  IndexExpr sum = a.constant();
  for (const IndexExpr::Term& t : a.terms()) {
    if (!t.div_mod) {
      sum = sum + by(t.variable) * t.factor;
    } else {
      const IndexExpr inner = substitute(t.div_mod->inner, by, extents);
      sum = sum + (t.div_mod->is_division ? floor_div(inner, t.div_mod->divisor, extents)
                                          : remainder(inner, t.div_mod->divisor, extents)) *
                      t.factor;
    }
  }
  return sum;
}

std::string to_string(const IndexExpr& a) {
  std::string text;
  auto plus = [&](const std::string& piece) { text += (text.empty() ? "" : " + ") + piece; };
  if (a.constant() != 0 || a.terms().empty()) plus(fmt::format("{}", a.constant()));
  for (const IndexExpr::Term& t : a.terms()) {
    const std::string atom = t.div_mod ? fmt::format("(({}) {} {})", to_string(t.div_mod->inner),
                                                     t.div_mod->is_division ? "/" : "%", t.div_mod->divisor)
                                       : fmt::format("i{}", t.variable);
    plus(t.factor == 1 ? atom : fmt::format("{}*{}", t.factor, atom));
  }
  return text;
}

IndexExpr linearize(std::span<const IndexExpr> coordinates, const Shape& shape) {
  IndexExpr position = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    position = position * shape[axis] + coordinates[static_cast<std::size_t>(axis)];
  return position;
}

std::vector<IndexExpr> delinearize(const IndexExpr& position, const Shape& shape, const Extents& extents) {
  std::vector<IndexExpr> coordinates(static_cast<std::size_t>(shape.rank()));
  IndexExpr rest = position;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const Index extent = std::max<Index>(shape[axis], 1);
    coordinates[static_cast<std::size_t>(axis)] = axis == 0 ? rest : remainder(rest, extent, extents);
    rest = floor_div(rest, extent, extents);
  }
  return coordinates;
}

}  // namespace tilewright::passes
