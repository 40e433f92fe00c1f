// Masks as conditions on positions.
#include "passes/nest/condition.h"

#include "ops/rows.h"
#include "passes/nest/dot_axes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tilewright::passes {

using Kind = Condition::Kind;
using Along = Condition::Along;

namespace {

Condition of_kind(Kind kind) { return {.kind = kind}; }

// Whether `part` adds nothing to `other` under "and" or "or".
bool adds_nothing(Kind kind, const Condition& part, const Condition& other) {
  return part == other || (kind == Kind::both ? implies(other, part) : implies(part, other));
}

// `absorbing` makes the whole, `neutral` adds nothing; parts of the same kind are taken in.
Condition join(Kind kind, Kind absorbing, Kind neutral, Condition a, Condition b) {
  if (a.kind == absorbing || b.kind == neutral) return a;
  if (b.kind == absorbing || a.kind == neutral) return b;
  Condition out{.kind = kind};
  for (Condition* c : {&a, &b}) {
    const std::vector<Condition> single{*c};
    for (const Condition& part : c->kind == kind ? c->parts : single) {
      const auto covers = [&](const Condition& known) { return adds_nothing(kind, part, known); };
      if (std::any_of(out.parts.begin(), out.parts.end(), covers)) continue;
      std::erase_if(out.parts, [&](const Condition& known) { return adds_nothing(kind, known, part); });
      out.parts.push_back(part);
    }
  }
  return out.parts.size() == 1 ? out.parts[0] : out;
}

std::vector<Condition::Value> opposite(std::vector<Condition::Value> values) {
  for (Condition::Value& v : values) v.factor = -v.factor;
  return values;
}

Linear plus(const Linear& a, Index by) { return {a.expression + by, a.values, a.summed}; }
Linear minus(const Linear& a) { return {a.expression * -1, opposite(a.values), a.summed}; }

Condition not_positive(const Linear& d, const Extents& extents) {
  const IndexRange r = range(d.expression, extents);
  if (d.values.empty() && r.high <= 0) return of_kind(Kind::always);
  if (d.values.empty() && r.low > 0) return of_kind(Kind::never);
  constexpr Index kMost = Index{1} << 40;
  if (r.low < -kMost || r.high > kMost) return of_kind(Kind::unknown);
  return {.kind = Kind::not_positive, .expression = d.expression, .values = d.values, .summed = d.summed};
}

class ConditionReader {
 public:
  ConditionReader(const ir::Graph& graph, const LoopNest& nest)
      : graph_(graph), nest_(nest), depends_(dependence(nest)), axes_(tile_variables()) {
    if (nest.has_dots()) dot_ = dot_axes(nest);
  }

  Condition condition(int s) const {
    Condition c = made_of_others(s);
    if (c.kind != Kind::unknown || !is_bool(expr(s).dtype)) return c;
    const std::optional<Along> along = vector_along(s);
    if (!along) return c;
    return {.kind = Kind::not_positive, .expression = 1, .values = {{s, -1, *along}}};
  }

  Condition may_differ(int s, double value) {
    const auto key = std::make_pair(s, value);
    if (const auto known = differ_.find(key); known != differ_.end()) return known->second;
    return differ_[key] = find_difference(s, value);
  }

 private:
  const Expr& expr(int s) const { return nest_.exprs[static_cast<std::size_t>(s)]; }

  Condition made_of_others(int s) const {
    const Expr& m = expr(s);
    if (m.kind == Expr::Kind::constant) return of_kind(m.number.i != 0 ? Kind::always : Kind::never);
    if (m.kind == Expr::Kind::in_range) return inside(m);
    if (m.kind == Expr::Kind::where) return chosen(m);
    if (m.kind != Expr::Kind::op) return of_kind(Kind::unknown);
    const ir::Op* op = graph_.node(m.node).op;
    if (op == &ops::kBitAnd) return both(condition(m.operands[0]), condition(m.operands[1]));
    if (op == &ops::kBitOr) return either(condition(m.operands[0]), condition(m.operands[1]));
    if (op == &ops::kBitNot) return negated(condition(m.operands[0]));
    if (op == &ops::kWhere) return chosen(m);
    return comparison(m, op);
  }

  Condition chosen(const Expr& m) const {
    const Condition c = condition(m.operands[0]);
    return either(both(c, condition(m.operands[1])), both(negated(c), condition(m.operands[2])));
  }

  // Exprs that are the same in the whole program depend on none of these.
  std::vector<bool> tile_variables() const {
    std::vector<bool> out = nest_.reduced;
    for (std::size_t v = 0; v < out.size(); ++v) out[v] = out[v] || nest_.inner[v];
    if (nest_.has_dots()) {
      const DotAxes axes = dot_axes(nest_);
      for (int v : {axes.m, axes.n})
        if (v >= 0) out[static_cast<std::size_t>(v)] = true;
    } else {
      out.assign(out.size(), true);  // any variable may be an axis of the tile
    }
    return out;
  }
  bool is_scalar(int s) const {
    const Expr& m = expr(s);
    if (m.level > 0 || m.reduced || is_float(m.dtype) || is_bool(m.dtype)) return false;
    const std::vector<bool>& on = depends_[static_cast<std::size_t>(s)];
    for (std::size_t v = 0; v < on.size(); ++v)
      if (on[v] && axes_[v]) return false;
    if (m.kind == Expr::Kind::cast) return is_scalar(m.operands[0]);
    return m.kind == Expr::Kind::load && m.offset.is_affine() && m.dynamic.empty() && m.mask < 0;
  }

  // Data that differs along one axis of a dot's tile alone.
  std::optional<Along> vector_along(int s) const {
    if (dot_.dot < 0 || expr(s).level > 0 || is_float(expr(s).dtype)) return std::nullopt;
    const std::vector<bool>& on = depends_[static_cast<std::size_t>(s)];
    std::optional<Along> along;
    for (std::size_t v = 0; v < on.size(); ++v) {
      if (!on[v] || !axes_[v]) continue;
      const int variable = static_cast<int>(v);
      if (along || (variable != dot_.m && variable != dot_.k)) return std::nullopt;
      along = variable == dot_.m ? Along::rows : Along::walked;
    }
    const std::vector<bool> parts = nest_.made_of({s});
    for (std::size_t p = 0; p < parts.size(); ++p)
      if (parts[p] && expr(static_cast<int>(p)).kind == Expr::Kind::load) return along;
    return std::nullopt;
  }

  std::optional<Linear> linear(int s) const {
    if (std::optional<Linear> sum = linear_sum(s)) return sum;
    const std::optional<Along> along = is_bool(expr(s).dtype) ? std::nullopt : vector_along(s);
    return along ? std::optional(Linear{0, {{s, 1, *along}}}) : std::nullopt;
  }
  std::optional<Linear> linear_sum(int s) const {
    const Expr& m = expr(s);
    if (is_float(m.dtype) || is_bool(m.dtype)) return std::nullopt;
    if (m.kind == Expr::Kind::constant) return Linear{m.number.i, {}};
    if (m.kind == Expr::Kind::index) return Linear{m.offset, {}};
    if (is_scalar(s)) return Linear{0, {{s, 1, Along::nothing}}};
    if (m.kind != Expr::Kind::op || m.dtype != DType::i64) return std::nullopt;
    const ir::Op* op = graph_.node(m.node).op;
    if (op != &ops::kAdd && op != &ops::kSub) return std::nullopt;
    const auto a = linear(m.operands[0]), b = linear(m.operands[1]);
    std::optional<Linear> out = a && b ? sum(*a, *b, op == &ops::kAdd ? 1 : -1) : std::nullopt;
    if (out) out->summed = !out->values.empty();
    return out;
  }
  static std::optional<Linear> sum(const Linear& a, const Linear& b, int sign) {
    Linear out{a.expression + b.expression * sign, a.values, a.summed || b.summed};
    for (const Condition::Value& v : b.values) {
      const auto same = std::find_if(out.values.begin(), out.values.end(),
                                     [&](const Condition::Value& o) { return o.expr == v.expr; });
      if (same == out.values.end()) {
        out.values.push_back({v.expr, v.factor * sign, v.along});
        continue;
      }
      same->factor += v.factor * sign;
      if (same->factor == 0) out.values.erase(same);
    }
    // Two scalars may lie as far apart as their type allows.
    if (out.values.size() > 1 &&
        std::all_of(out.values.begin(), out.values.end(),
                    [](const Condition::Value& v) { return v.along == Along::nothing; }))
      return std::nullopt;
    return out;
  }

  Condition inside(const Expr& m) const {
    Linear i{m.offset, {}};
    if (!m.operands.empty()) {
      const std::optional<Linear> value = linear(m.operands[0]);
      if (!value) return of_kind(Kind::unknown);
      i = {value->expression + m.offset, value->values, !(m.offset == IndexExpr(0)) || value->summed};
    }
    return both(not_positive(plus(minus(i), m.low), nest_.extents),
                not_positive(plus(i, 1 - m.high), nest_.extents));
  }

  Condition comparison(const Expr& m, const ir::Op* op) const {
    if (m.operands.size() != 2) return of_kind(Kind::unknown);
    const auto a = linear(m.operands[0]), b = linear(m.operands[1]);
    const auto d = a && b ? sum(*a, *b, -1) : std::nullopt;
    return d ? compared(*op, *d, nest_.extents) : of_kind(Kind::unknown);
  }

  Condition find_difference(int s, double value) {
    const Expr& m = expr(s);
    const auto of = [&](std::size_t operand, double v) { return may_differ(m.operands[operand], v); };
    switch (m.kind) {
      case Expr::Kind::constant: {
        // Large integers are compared where doubles hold them.
        constexpr Index kExact = Index{1} << 53;
        const bool exact = is_float(m.dtype) || std::abs(m.number.i / 2) < kExact / 2 ||
                           m.number.i == std::numeric_limits<Index>::min();
        const double mine = is_float(m.dtype) ? m.number.f : static_cast<double>(m.number.i);
        return of_kind(exact && mine == value ? Kind::never : Kind::always);
      }
      case Expr::Kind::load: {
        if (value != 0 || m.mask < 0) return of_kind(Kind::always);
        // A table's entries that lie outside are not looked for.
        const Condition read = condition(m.mask);
        return !m.dynamic.empty() && read.of_vectors() ? of_kind(Kind::always) : read;
      }
      case Expr::Kind::cast:
        return is_float(m.dtype) && is_float(expr(m.operands[0]).dtype) ? of(0, value)
                                                                        : of_kind(Kind::always);
      case Expr::Kind::where:
        return difference_of_choice(m, value);
      case Expr::Kind::op:
        return difference_of_op(m, value);
      default:
        return of_kind(Kind::always);
    }
  }

  // Constants that make a zero a NaN: as factors, and as divisors. Data are taken for finite where they meet
  // a masked zero.
  bool is_never_finite(int s) const {
    const Expr& m = expr(s);
    return m.kind == Expr::Kind::constant && is_float(m.dtype) && !std::isfinite(m.number.f);
  }
  bool makes_nan_of_zero(int s) const {
    const Expr& m = expr(s);
    return m.kind == Expr::Kind::constant && is_float(m.dtype) && (m.number.f == 0 || std::isnan(m.number.f));
  }

  Condition difference_of_choice(const Expr& m, double value) {
    const Condition c = condition(m.operands[0]);
    return either(both(c, may_differ(m.operands[1], value)),
                  both(negated(c), may_differ(m.operands[2], value)));
  }

  Condition difference_of_op(const Expr& m, double value) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const ir::Op* op = graph_.node(m.node).op;
    const auto of = [&](std::size_t operand, double v) { return may_differ(m.operands[operand], v); };
    if (op == &ops::kWhere) return difference_of_choice(m, value);
    if (op == &ops::kNeg) return of(0, -value);
    if ((op == &ops::kExp || op == &ops::kExp2) && value == 0) return of(0, -kInfinity);
    if (op == &ops::kMaximum || op == &ops::kMinimum) return either(of(0, value), of(1, value));
    if (op == &ops::kAdd || op == &ops::kSub) {
      const double other = op == &ops::kAdd ? value : -value;
      if (value == 0) return either(of(0, value), of(1, value));
      return std::isinf(value) ? both(of(0, value), of(1, other)) : of_kind(Kind::always);
    }
    if (op == &ops::kMul && value == 0) {
      if (is_never_finite(m.operands[0]) || is_never_finite(m.operands[1])) return of_kind(Kind::always);
      return both(of(0, value), of(1, value));
    }
    if (op == &ops::kDiv && value == 0)
      return makes_nan_of_zero(m.operands[1]) ? of_kind(Kind::always) : of(0, value);
    if ((op == &ops::kMul || op == &ops::kDiv) && std::isinf(value))
      for (std::size_t side : {1, 0}) {
        const Expr& by = expr(m.operands[side]);
        if (by.kind != Expr::Kind::constant || !is_float(by.dtype) || by.number.f == 0) continue;
        if (side == 1 || op == &ops::kMul) return of(1 - side, by.number.f > 0 ? value : -value);
      }
    return of_kind(Kind::always);
  }

  const ir::Graph& graph_;
  const LoopNest& nest_;
  const std::vector<std::vector<bool>> depends_;
  const std::vector<bool> axes_;
  DotAxes dot_;
  std::map<std::pair<int, double>, Condition> differ_;
};

// For each expr, the condition under which an output uses its value.
std::vector<Condition> used_at(const ConditionReader& reader, const ir::Graph& graph, const LoopNest& nest) {
  std::vector<Condition> used(nest.exprs.size(), of_kind(Kind::never));
  const auto use = [&](int s, const Condition& at) {
    Condition& all = used[static_cast<std::size_t>(s)];
    all = either(all, at);
  };
  const auto use_whole = [&](const std::vector<std::pair<int, Index>>& dynamic, int mask) {
    for (auto [s, stride] : dynamic) use(s, of_kind(Kind::always));
    if (mask >= 0) use(mask, of_kind(Kind::always));
  };
  for (const ProgramOutput& o : nest.outputs) {
    use(o.expr, of_kind(Kind::always));
    use_whole(o.dynamic, o.mask);
  }
  for (std::size_t s = nest.exprs.size(); s-- > 0;) {
    const Expr& m = nest.exprs[s];
    const Condition at = without_reduced(used[s], nest);
    if (at.kind == Kind::never) continue;
    use_whole(m.dynamic, m.mask);
    const bool choice =
        m.kind == Expr::Kind::where || (m.kind == Expr::Kind::op && graph.node(m.node).op == &ops::kWhere);
    for (std::size_t i = 0; i < m.operands.size(); ++i) {
      Condition here = at;
      if (choice && i > 0) {
        const Condition c = reader.condition(m.operands[0]);
        here = both(here, without_reduced(i == 1 ? c : negated(c), nest));
      }
      use(m.operands[i], here);
    }
  }
  return used;
}

double nothing(const Expr& m, bool dot) {
  if (dot) return 0;
  const tile::Number n = identity(m.monoid, m.dtype);
  return is_float(m.dtype) ? n.f : static_cast<double>(n.i);
}

}  // namespace

bool Condition::of_vectors() const {
  return std::any_of(parts.begin(), parts.end(), [](const Condition& c) { return c.of_vectors(); }) ||
         std::any_of(values.begin(), values.end(), [](const Value& v) { return v.along != Along::nothing; });
}

Condition both(Condition a, Condition b) {
  return join(Kind::both, Kind::never, Kind::always, std::move(a), std::move(b));
}

Condition either(Condition a, Condition b) {
  return join(Kind::either, Kind::always, Kind::never, std::move(a), std::move(b));
}

Condition negated(const Condition& c) {
  switch (c.kind) {
    case Kind::never:
      return of_kind(Kind::always);
    case Kind::always:
      return of_kind(Kind::never);
    case Kind::unknown:
      return c;
    case Kind::not_positive:  // 1 - d <= 0
      return {.kind = c.kind,
              .expression = c.expression * -1 + 1,
              .values = opposite(c.values),
              .summed = c.summed};
    case Kind::both:
    case Kind::either:
      break;
  }
  const bool all = c.kind == Kind::both;
  Condition out = of_kind(all ? Kind::never : Kind::always);
  for (const Condition& part : c.parts) out = all ? either(out, negated(part)) : both(out, negated(part));
  return out;
}

bool implies(const Condition& a, const Condition& b) {
  const auto by_a = [&](const Condition& part) { return implies(a, part); };
  const auto of_b = [&](const Condition& part) { return implies(part, b); };
  if (a.kind == Kind::never || b.kind == Kind::always) return true;
  if (b.kind == Kind::both) return std::all_of(b.parts.begin(), b.parts.end(), by_a);
  if (a.kind == Kind::either) return std::all_of(a.parts.begin(), a.parts.end(), of_b);
  if (a.kind == Kind::both && std::any_of(a.parts.begin(), a.parts.end(), of_b)) return true;
  if (b.kind == Kind::either) return std::any_of(b.parts.begin(), b.parts.end(), by_a);
  if (a.kind != Kind::not_positive || b.kind != Kind::not_positive || a.values != b.values ||
      a.summed != b.summed)
    return false;
  const IndexExpr more = b.expression - a.expression;
  return more.is_constant() && more.constant() <= 0;
}

Condition compared(const ir::Op& op, const Linear& difference, const Extents& extents) {
  const Linear opposite = minus(difference);
  Condition at_most = not_positive(difference, extents), at_least = not_positive(opposite, extents);
  if (&op == &ops::kLe) return at_most;
  if (&op == &ops::kGe) return at_least;
  if (&op == &ops::kLt) return not_positive(plus(difference, 1), extents);
  if (&op == &ops::kGt) return not_positive(plus(opposite, 1), extents);
  if (&op == &ops::kEq) return both(at_most, at_least);
  if (&op == &ops::kNe) return either(negated(at_most), negated(at_least));
  return of_kind(Kind::unknown);
}

Condition without_reduced(const Condition& c, const LoopNest& nest) {
  if (c.kind == Kind::not_positive) {
    for (std::size_t v = 0; v < nest.extents.size(); ++v)
      if ((nest.reduced[v] || nest.inner[v]) && c.expression.depends_on(static_cast<int>(v)))
        return of_kind(Kind::unknown);
    const bool walks = std::any_of(c.values.begin(), c.values.end(),
                                   [](const Condition::Value& v) { return v.along == Along::walked; });
    return walks ? of_kind(Kind::unknown) : c;
  }
  if (c.parts.empty()) return c;
  const bool all = c.kind == Kind::both;
  Condition out = of_kind(all ? Kind::always : Kind::never);
  for (const Condition& part : c.parts)
    out = all ? both(out, without_reduced(part, nest)) : either(out, without_reduced(part, nest));
  return out;
}

Condition condition_of(const ir::Graph& graph, const LoopNest& nest, int expr) {
  return ConditionReader(graph, nest).condition(expr);
}

Condition may_differ(const ir::Graph& graph, const LoopNest& nest, int expr, tile::Number value) {
  const bool real = is_float(nest.exprs[static_cast<std::size_t>(expr)].dtype);
  return ConditionReader(graph, nest).may_differ(expr, real ? value.f : static_cast<double>(value.i));
}

Condition needed(const ir::Graph& graph, const LoopNest& nest, const std::vector<int>& reductions) {
  ConditionReader reader(graph, nest);
  const std::vector<Condition> used = used_at(reader, graph, nest);
  Condition out = of_kind(Kind::never);
  for (int s : reductions) {
    const Expr& m = nest.exprs[static_cast<std::size_t>(s)];
    const bool dot = m.kind == Expr::Kind::dot;
    Condition here = reader.may_differ(m.operands[0], nothing(m, dot));
    if (dot) here = both(here, reader.may_differ(m.operands[1], 0));
    out = either(out, both(here, used[static_cast<std::size_t>(s)]));
  }
  return out;
}

}  // namespace tilewright::passes
