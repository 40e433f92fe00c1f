// Division of F(x, m_new) by F(x, m_old), by structure.
#include "passes/nest/online.h"

#include "ops/rows.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

using Kind = Change::Kind;

ChangePtr make(Kind kind, std::vector<ChangePtr> parts = {}, int expr = -1) {
  return std::make_shared<const Change>(Change{kind, expr, std::move(parts)});
}

class Divider {
 public:
  // What is known of a difference, whatever the elements are.
  enum class Sign : std::uint8_t { not_positive, not_negative, any };

  Divider(const ir::Graph& graph, const LoopNest& nest, const std::vector<int>& moving)
      : graph_(graph), nest_(nest), moving_(moving), moves_(nest.exprs.size()) {
    for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
      const Expr& m = nest.exprs[s];
      bool moves = is_moving(static_cast<int>(s));
      for (int o : m.operands) moves = moves || moves_[at(o)];
      for (auto [o, stride] : m.dynamic) moves = moves || moves_[at(o)];
      moves_[s] = moves || (m.mask >= 0 && moves_[at(m.mask)]);
    }
  }

  // A factor that is never above 1, or, of what is divided by, never below. What grows by a factor may have
  // vanished before, and is lost; while a maximum has seen nothing it is minus infinity, from where it moves
  // by a factor of 0, or of infinity.
  ChangePtr factor(int s, Sign exponent = Sign::not_positive) const {
    if (!moves_[at(s)]) return make(Kind::none);
    const Expr& m = expr(s);
    if (m.kind == Expr::Kind::cast) return is_float(m.dtype) ? factor(m.operands[0], exponent) : nullptr;
    if (m.kind == Expr::Kind::where) return factor_of_where(m, exponent);
    if (m.kind != Expr::Kind::op) return nullptr;
    const ir::Op* op = graph_.node(m.node).op;
    if (op == &ops::kExp || op == &ops::kExp2) {
      const ChangePtr d = difference(m.operands[0]);
      return d && sign_of(*d) == exponent ? make(op == &ops::kExp ? Kind::exp : Kind::exp2, {d}) : nullptr;
    }
    if (op == &ops::kNeg) return factor(m.operands[0], exponent);
    if (op == &ops::kWhere) return factor_of_where(m, exponent);
    if (op == &ops::kMul || op == &ops::kDiv) {
      ChangePtr a = factor(m.operands[0], exponent),
                b = factor(m.operands[1], op == &ops::kMul ? exponent : opposite(exponent));
      if (!a || !b) return nullptr;
      if (b->kind == Kind::none) return a;
      const ChangePtr right = op == &ops::kMul ? b : make(Kind::inverse, {b});
      return a->kind == Kind::none ? right : make(Kind::product, {a, right});
    }
    return nullptr;
  }

 private:
  static Sign opposite(Sign s) {
    return s == Sign::any ? s : s == Sign::not_positive ? Sign::not_negative : Sign::not_positive;
  }
  // A maximum grows, a minimum falls.
  Sign sign_of(const Change& c) const {
    switch (c.kind) {
      case Kind::old_to_new: {
        const tile::Monoid monoid = expr(c.expr).monoid;
        return monoid == tile::Monoid::max   ? Sign::not_negative
               : monoid == tile::Monoid::min ? Sign::not_positive
                                             : Sign::any;
      }
      case Kind::at_least:
      case Kind::at_most:
        return sign_of(*c.parts[0]);
      case Kind::negative:
        return opposite(sign_of(*c.parts[0]));
      case Kind::sum: {
        const Sign a = sign_of(*c.parts[0]);
        return a == sign_of(*c.parts[1]) ? a : Sign::any;
      }
      case Kind::scaled: {
        const Expr& by = expr(c.expr);
        if (by.kind != Expr::Kind::constant || by.number.f == 0) return Sign::any;
        const Sign of = sign_of(*c.parts[0]);
        return by.number.f > 0 ? of : opposite(of);
      }
      default:
        return Sign::any;
    }
  }

  const Expr& expr(int s) const { return nest_.exprs[at(s)]; }
  bool is_moving(int s) const { return std::find(moving_.begin(), moving_.end(), s) != moving_.end(); }

  // A choice that does not move between values that move alike; zero moves by any factor.
  ChangePtr factor_of_where(const Expr& m, Sign exponent) const {
    if (moves_[at(m.operands[0])]) return nullptr;
    for (int side : {1, 2}) {
      const Expr& zero = expr(m.operands[at(side)]);
      if (zero.kind == Expr::Kind::constant && zero.number.f == 0 && zero.number.i == 0)
        return factor(m.operands[at(3 - side)], exponent);
    }
    return nullptr;
  }

  ChangePtr difference(int s) const {
    if (!moves_[at(s)]) return make(Kind::none);
    if (is_moving(s)) return make(Kind::old_to_new, {}, s);
    const Expr& m = expr(s);
    if (m.kind == Expr::Kind::cast) return is_float(m.dtype) ? difference(m.operands[0]) : nullptr;
    if (m.kind != Expr::Kind::op) return nullptr;
    const ir::Op* op = graph_.node(m.node).op;
    if (op == &ops::kNeg) return negative(difference(m.operands[0]));
    if (op == &ops::kAdd) return sum(difference(m.operands[0]), difference(m.operands[1]));
    if (op == &ops::kSub) return sum(difference(m.operands[0]), negative(difference(m.operands[1])));
    if (op == &ops::kMul)
      for (int side : {0, 1}) {
        // A difference is scaled by an operand that is the same for every element.
        const int by = m.operands[at(1 - side)];
        if (moves_[at(by)] || expr(by).reduced) continue;
        const ChangePtr d = difference(m.operands[at(side)]);
        return d ? make(Kind::scaled, {d}, by) : nullptr;
      }
    if (op == &ops::kMaximum || op == &ops::kMinimum) return clamped(s, op == &ops::kMaximum);
    return nullptr;
  }

  // What keeps a maximum of nothing finite. Both ends of a reduction's own change can be clamped, no others.
  ChangePtr clamped(int s, bool from_below) const {
    const Expr& m = expr(s);
    for (int side : {0, 1}) {
      const int bound = m.operands[at(1 - side)];
      if (moves_[at(bound)] || expr(bound).reduced) continue;
      const ChangePtr d = difference(m.operands[at(side)]);
      const bool ends =
          d && (d->kind == Kind::old_to_new || d->kind == Kind::at_least || d->kind == Kind::at_most);
      if (ends)
        return std::make_shared<const Change>(
            Change{from_below ? Kind::at_least : Kind::at_most, bound, {d}, s});
    }
    return nullptr;
  }

  static ChangePtr negative(const ChangePtr& d) {
    return !d || d->kind == Kind::none ? d : make(Kind::negative, {d});
  }
  static ChangePtr sum(const ChangePtr& a, const ChangePtr& b) {
    if (!a || !b) return nullptr;
    if (a->kind == Kind::none) return b;
    return b->kind == Kind::none ? a : make(Kind::sum, {a, b});
  }

  const ir::Graph& graph_;
  const LoopNest& nest_;
  const std::vector<int>& moving_;
  std::vector<bool> moves_;
};

// The factor of what a reduction or dot adds up, where sums are what is added.
ChangePtr carried_factor(const ir::Graph& graph, const LoopNest& nest, int s,
                         const std::vector<int>& moving) {
  const Expr& m = nest.exprs[static_cast<std::size_t>(s)];
  const bool adds = m.kind == Expr::Kind::dot || m.monoid == tile::Monoid::sum;
  if (!is_float(m.dtype) || !adds) return nullptr;
  if (m.kind == Expr::Kind::dot && accumulator(m) != m.dtype) return nullptr;
  ChangePtr first = factor_of(graph, nest, m.operands[0], moving);
  if (m.kind != Expr::Kind::dot || !first) return first;
  const ChangePtr second = factor_of(graph, nest, m.operands[1], moving);
  return second && second->kind == Kind::none ? first : nullptr;
}

}  // namespace

bool operator==(const Change& a, const Change& b) {
  return a.kind == b.kind && a.expr == b.expr &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [](const ChangePtr& x, const ChangePtr& y) { return *x == *y; });
}

ChangePtr factor_of(const ir::Graph& graph, const LoopNest& nest, int expr, const std::vector<int>& moving) {
  return Divider(graph, nest, moving).factor(expr);
}

std::vector<ReductionPass> reduction_passes(const ir::Graph& graph, const LoopNest& nest) {
  std::vector<ReductionPass> passes;
  for (int level = 1; level <= nest.levels(); ++level) {
    std::vector<int> here;
    for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
      const Expr& m = nest.exprs[s];
      if (m.level == level && (m.kind == Expr::Kind::reduce || nest.is_outer_dot(static_cast<int>(s))))
        here.push_back(static_cast<int>(s));
    }
    if (here.empty()) continue;
    // The product last: what its operand is made of is still at hand for the sums.
    std::stable_partition(here.begin(), here.end(), [&](int s) { return !nest.is_outer_dot(s); });
    std::vector<ChangePtr> factors;
    if (!passes.empty())
      for (int s : here) factors.push_back(carried_factor(graph, nest, s, passes.back().exprs));
    const bool joins = !passes.empty() && std::none_of(factors.begin(), factors.end(),
                                                       [](const ChangePtr& f) { return f == nullptr; });
    if (!joins) {
      passes.push_back({{}, level, {}});
      factors.assign(here.size(), nullptr);
    }
    passes.back().exprs.insert(passes.back().exprs.end(), here.begin(), here.end());
    passes.back().factors.insert(passes.back().factors.end(), factors.begin(), factors.end());
  }
  return passes;
}

}  // namespace tilewright::passes
