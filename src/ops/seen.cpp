// Masks as conditions: "or" of "and" of comparisons. Comparisons of positions are inequalities, out of which
// the query is eliminated where keys are asked for, and the key where queries are (Fourier and Motzkin);
// exactly, since its factor is 1 or -1.
#include "ops/seen.h"

#include "ops/rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace tilewright::ops {

namespace {

using ir::Node;
using ir::OpClass;
using Wide = __int128;

// Axes of the scores, counted from the last.
constexpr int kKey = 0, kQuery = 1, kHead = 2;
// Limits of a mask written as an "or" of "and"s; a larger one is looked at query by query.
constexpr std::size_t kMostTerms = 16, kMostParts = 64;

const Node& node_of(Value v) { return v.graph->node(v.id); }
Value operand_of(Value v, std::size_t i) { return {v.graph, node_of(v).operands[i]}; }

// A value, and along which axis of the scores each of its axes lies; -1: a unit axis.
struct Placed {
  Value value;
  std::vector<int> axes;
};

Placed placed(Value v) {
  Placed out{v, {}};
  const int rank = v.shape().rank();
  for (int i = 0; i < rank; ++i) out.axes.push_back(v.shape()[i] == 1 ? -1 : rank - 1 - i);
  return out;
}

// Its operand, as it lies then. None for what moves elements.
std::optional<Placed> operand(const Placed& p, std::size_t i) {
  const Value from = operand_of(p.value, i);
  const Shape &to = p.value.shape(), &shape = from.shape();
  const OpClass kind = node_of(p.value).op->kind;
  Placed out{from, std::vector<int>(static_cast<std::size_t>(shape.rank()), -1)};
  if (kind == OpClass::reshape) {
    int at = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1) continue;
      while (at < to.rank() && to[at] == 1) ++at;
      if (at == to.rank() || to[at] != shape[d]) return std::nullopt;
      out.axes[static_cast<std::size_t>(d)] = p.axes[static_cast<std::size_t>(at++)];
    }
    return out;
  }
  const bool by_element = kind == OpClass::pointwise || kind == OpClass::cast || kind == OpClass::expand;
  const bool index = kind == OpClass::take && i == 1 && operand_of(p.value, 0).shape().rank() == 1;
  if ((!by_element && !index) || shape.rank() != to.rank()) return std::nullopt;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 1) out.axes[static_cast<std::size_t>(d)] = p.axes[static_cast<std::size_t>(d)];
  return out;
}

// A value before it was stretched or reshaped, as it lies then.
Placed before_views(Placed p) {
  while (node_of(p.value).op == &kExpand || node_of(p.value).op == &kReshape) {
    const auto from = operand(p, 0);
    if (!from) break;
    p = *from;
  }
  return p;
}

bool lies_along(const Placed& p, int axis) {
  return std::find(p.axes.begin(), p.axes.end(), axis) != p.axes.end();
}

// other * (position along the other axis) + own * (position along the axis asked for) + constant.
struct Line {
  Wide other = 0, own = 0, constant = 0;
};
Line plus(const Line& a, const Line& b, Wide factor) {
  return {a.other + factor * b.other, a.own + factor * b.own, a.constant + factor * b.constant};
}

// The axis of the scores whose positions are asked for, and the one that sees them or is seen by them.
struct Roles {
  int own = kKey, other = kQuery;
  Index owns = 0, others = 0;  // lengths
  // The largest and the least value.
  Wide most(const Line& l) const {
    return l.constant + std::max<Wide>(0, l.other * (others - 1)) + std::max<Wide>(0, l.own * (owns - 1));
  }
  Wide least(const Line& l) const { return -most(plus({}, l, -1)); }
  // Arithmetic in an integer type that the values stay inside of.
  bool fits(const Line& l, DType dtype) const {
    const Wide end = dtype == DType::i64   ? Wide{std::numeric_limits<Index>::max()}
                     : dtype == DType::i32 ? Wide{std::numeric_limits<std::int32_t>::max()}
                                           : Wide{0};
    return most(l) <= end && least(l) >= -end;
  }
};

std::optional<Line> line_of(const Placed& p, const Roles& roles) {
  const Node& n = node_of(p.value);
  Line out;
  if (n.op == &kConstant) {
    if (is_float(n.type.dtype)) return std::nullopt;
    out.constant = n.attrs.integer("value");
  } else if (n.op == &kIota) {
    const int axis = p.axes[static_cast<std::size_t>(n.attrs.integer("axis"))];
    if (axis > kQuery) return std::nullopt;
    if (axis == roles.other) out.other = 1;
    if (axis == roles.own) out.own = 1;
  } else if (n.op == &kAdd || n.op == &kSub || n.op == &kMul) {
    const auto left = operand(p, 0), right = operand(p, 1);
    if (!left || !right) return std::nullopt;
    const auto a = line_of(*left, roles), b = line_of(*right, roles);
    if (!a || !b) return std::nullopt;
    const auto is_number = [](const Line& l) { return l.other == 0 && l.own == 0; };
    if (n.op != &kMul)
      out = plus(*a, *b, n.op == &kAdd ? 1 : -1);
    else if (is_number(*a) || is_number(*b))
      out = is_number(*a) ? plus({}, *b, a->constant) : plus({}, *a, b->constant);
    else
      return std::nullopt;
  } else if (n.op == &kNeg || n.op == &kCast || n.op == &kExpand || n.op == &kReshape) {
    const auto from = operand(p, 0);
    if (!from || is_float(n.type.dtype) || is_bool(from->value.dtype())) return std::nullopt;
    const auto a = line_of(*from, roles);
    if (!a) return std::nullopt;
    out = n.op == &kNeg ? plus({}, *a, -1) : *a;
  } else {
    return std::nullopt;
  }
  return roles.fits(out, n.type.dtype) ? std::optional(out) : std::nullopt;
}

// Whether a and b are equal on the diagonal, where the query has the number of the key.
bool same_at_own_place(const Placed& a, const Placed& b) {
  const Node &x = node_of(a.value), &y = node_of(b.value);
  const auto is_view = [](const Node& n) { return n.op == &kReshape || n.op == &kExpand; };
  if (is_view(x)) {
    const auto from = operand(a, 0);
    return from && same_at_own_place(*from, b);
  }
  if (is_view(y)) {
    const auto from = operand(b, 0);
    return from && same_at_own_place(a, *from);
  }
  const auto along = [](int axis) { return axis == kQuery ? kKey : axis; };
  const auto axes_of = [&](const Placed& p) {
    std::vector<int> axes;
    for (int axis : p.axes)
      if (axis >= 0) axes.push_back(along(axis));
    return axes;
  };
  if (x.op != y.op || x.type.dtype != y.type.dtype) return false;
  if (x.op == &kConstant) return x.attrs.items().at("value") == y.attrs.items().at("value");
  if (x.op == &kIota) {
    const auto axis = [&](const Placed& p, const Node& n) {
      return along(p.axes[static_cast<std::size_t>(n.attrs.integer("axis"))]);
    };
    return axis(a, x) == axis(b, y);
  }
  if (a.value.id == b.value.id && axes_of(a) == axes_of(b)) return true;
  const OpClass kind = x.op->kind;
  if (kind == OpClass::take) {
    const auto i = operand(a, 1), j = operand(b, 1);
    return x.operands[0] == y.operands[0] && i && j && same_at_own_place(*i, *j);
  }
  if ((kind != OpClass::pointwise && kind != OpClass::cast) || !(x.attrs == y.attrs)) return false;
  for (std::size_t i = 0; i < x.operands.size(); ++i) {
    const auto from = operand(a, i), to = operand(b, i);
    if (!from || !to || !same_at_own_place(*from, *to)) return false;
  }
  return true;
}

// All of these hold: lines that are at most 0, bools that say the same along the other axis, and others.
struct Term {
  std::vector<Line> lines;
  std::vector<Value> of_own;
  std::vector<std::pair<Placed, bool>> others;  // and what they must be
};

class SeenFinder {
 public:
  // `heads` of the scores, `kv_heads` of k and v.
  SeenFinder(Value mask, const Shape& scores, Index kv_heads, Roles roles)
      : mask_(mask), roles_(roles), heads_(scores[1]), kv_heads_(kv_heads) {}

  Seen run() {
    Seen out;
    if (roles_.others == 0 || roles_.owns == 0) return out;
    std::vector<Placed> of_both;
    split(placed(mask_), out.seen, of_both);
    if (of_both.empty()) return out;
    const std::optional<Held> held = held_back(of_both);
    if (!held) return out;
    out.seen.push_back(as_own(held->seen));
    if (!held->is_implied) out.condition = to_scores(out.seen.back());
    return out;
  }

 private:
  bool asks_for_keys() const { return roles_.own == kKey; }

  // The parts of a conjunction: those that say the same along the other axis, and those that do not.
  void split(const Placed& p, std::vector<Value>& of_own, std::vector<Placed>& of_both) const {
    const Node& n = node_of(p.value);
    if (asks_for_keys() ? says_it_of_keys(p.value.shape()) : says_it_of_queries(p.value.shape())) {
      of_own.push_back(as_own(p.value));
      return;
    }
    const bool view = n.op == &kExpand || n.op == &kReshape;
    if (view || n.op == &kBitAnd) {
      const auto left = operand(p, 0), right = view ? left : operand(p, 1);
      // Operands are split only as they lie: one that is no suffix of the scores' axes stays one part.
      if (left && right && is_suffix(*left) && is_suffix(*right)) {
        split(*left, of_own, of_both);
        if (!view) split(*right, of_own, of_both);
        return;
      }
    }
    of_both.push_back(p);
  }
  static bool is_suffix(const Placed& p) {
    const int rank = p.value.shape().rank();
    for (int i = 0; i < rank; ++i)
      if (const int axis = p.axes[static_cast<std::size_t>(i)]; axis >= 0 && axis != rank - 1 - i)
        return false;
    return true;
  }
  static Index extent(const Shape& s, int axis) { return s.rank() <= axis ? 1 : s[s.rank() - 1 - axis]; }
  // The same to every query that shares keys; the same to every key.
  bool says_it_of_keys(const Shape& s) const {
    return extent(s, kQuery) == 1 && (extent(s, kHead) == 1 || heads_ == kv_heads_);
  }
  static bool says_it_of_queries(const Shape& s) { return extent(s, kKey) == 1; }

  // A bool of what is seen, which broadcasts to the scores with one position along the other axis (and, of
  // keys, with the heads of k and v). `is_implied`: wherever the mask holds, it does.
  struct Held {
    Value seen;
    bool is_implied = false;
  };
  // None where every key is seen by some query, or where no product needs to be kept from a query.
  std::optional<Held> held_back(const std::vector<Placed>& of_both) const {
    // A query that sees nothing because no key of its sequence is seen: no gradient of k is left to reach.
    const auto is_of_keys = [&](const Placed& p) { return says_it_of_keys(p.value.shape()); };
    if (!asks_for_keys() && std::all_of(of_both.begin(), of_both.end(), is_of_keys)) return std::nullopt;
    std::optional<std::vector<Term>> terms = std::vector<Term>(1);
    for (const Placed& p : of_both) terms = both(terms, terms_of(p, true));
    if (!terms) return by_looking(of_both);
    for (const Term& term : *terms)
      if (holds_at_own_place(term)) return std::nullopt;
    if (terms->size() == 1 && holds_at_first_key(terms->front())) return std::nullopt;
    for (const Term& term : *terms)
      if (!term.others.empty()) return by_looking(of_both);
    std::optional<Value> seen;
    for (const Term& term : *terms) {
      const std::optional<Value> of_term = without_other(term);
      if (!of_term) return std::nullopt;
      seen = seen ? bit_or(*seen, *of_term) : *of_term;
    }
    return Held{seen ? *seen : nothing()};
  }

  // --- as an "or" of terms; none: more than are looked at
  using Terms = std::optional<std::vector<Term>>;
  static Terms both(const Terms& a, const Terms& b) {
    if (!a || !b || a->size() * b->size() > kMostTerms) return std::nullopt;
    std::vector<Term> out;
    for (const Term& x : *a)
      for (const Term& y : *b) {
        Term t = x;
        t.lines.insert(t.lines.end(), y.lines.begin(), y.lines.end());
        t.of_own.insert(t.of_own.end(), y.of_own.begin(), y.of_own.end());
        t.others.insert(t.others.end(), y.others.begin(), y.others.end());
        if (t.lines.size() + t.of_own.size() + t.others.size() > kMostParts) return std::nullopt;
        out.push_back(std::move(t));
      }
    return out;
  }
  static Terms either(Terms a, const Terms& b) {
    if (!a || !b || a->size() + b->size() > kMostTerms) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }

  // The terms one of which holds wherever `p` is `wanted`.
  Terms terms_of(const Placed& p, bool wanted) const {
    const Node& n = node_of(p.value);
    if (n.op == &kBitNot) {
      const auto from = operand(p, 0);
      if (from) return terms_of(*from, !wanted);
    }
    if (n.op == &kBitAnd || n.op == &kBitOr) {
      const auto left = operand(p, 0), right = operand(p, 1);
      if (left && right) {
        const Terms a = terms_of(*left, wanted), b = terms_of(*right, wanted);
        return (n.op == &kBitAnd) == wanted ? both(a, b) : either(a, b);
      }
    }
    if (n.op == &kExpand || n.op == &kReshape)
      if (const auto from = operand(p, 0)) return terms_of(*from, wanted);
    if (Terms compared = comparison(p, wanted)) return compared;
    Term term;
    if (!lies_along(p, roles_.other) && !lies_along(p, kHead) && is_suffix(p))
      term.of_own.push_back(wanted ? p.value : bit_not(p.value));
    else
      term.others.push_back({p, wanted});
    return std::vector{term};
  }

  Terms comparison(const Placed& p, bool wanted) const {
    const Node& n = node_of(p.value);
    const bool compares =
        n.op == &kLe || n.op == &kLt || n.op == &kGe || n.op == &kGt || n.op == &kEq || n.op == &kNe;
    const auto left = compares ? operand(p, 0) : std::nullopt,
               right = compares ? operand(p, 1) : std::nullopt;
    if (!left || !right) return std::nullopt;
    const auto a = line_of(*left, roles_), b = line_of(*right, roles_);
    if (!a || !b) return std::nullopt;
    const Line apart = plus(*a, *b, -1), back = plus({}, apart, -1);
    if (apart.other < -1 || apart.other > 1) return std::nullopt;
    const auto one = [](const Line& line) { return std::vector{Term{.lines = {line}}}; };
    const Line next{0, 0, 1};
    if (n.op == &kLe) return one(wanted ? apart : plus(back, next, 1));
    if (n.op == &kGt) return one(wanted ? plus(back, next, 1) : apart);
    if (n.op == &kLt) return one(wanted ? plus(apart, next, 1) : back);
    if (n.op == &kGe) return one(wanted ? back : plus(apart, next, 1));
    if ((n.op == &kEq) == wanted) return std::vector{Term{.lines = {apart, back}}};
    return either(one(plus(apart, next, 1)), one(plus(back, next, 1)));
  }

  // --- one term
  // Whether the query that has the key's number sees it, for every position asked for.
  bool holds_at_own_place(const Term& term) const {
    if (roles_.owns > roles_.others || !term.of_own.empty()) return false;
    const auto holds = [&](const Line& line) {
      return roles_.most({0, line.other + line.own, line.constant}) <= 0;
    };
    const auto equal = [&](const std::pair<Placed, bool>& part) {
      const Node& n = node_of(part.first.value);
      const bool reflexive = n.op == &kEq || n.op == &kLe || n.op == &kGe;
      const bool irreflexive = n.op == &kNe || n.op == &kLt || n.op == &kGt;
      if (part.second ? !reflexive : !irreflexive) return false;
      const auto a = operand(part.first, 0), b = operand(part.first, 1);
      // NaN equals nothing.
      return a && b && !is_float(a->value.dtype()) && same_at_own_place(*a, *b);
    };
    return std::all_of(term.lines.begin(), term.lines.end(), holds) &&
           std::all_of(term.others.begin(), term.others.end(), equal);
  }

  // Whether a query sees the first key, if any query of its sequence sees any key: causality with lengths.
  bool holds_at_first_key(const Term& term) const {
    if (asks_for_keys() || !term.of_own.empty()) return false;
    const auto holds = [&](const Line& line) { return roles_.most({0, line.own, line.constant}) <= 0; };
    // Keys up to a number that is the same to every query that shares keys.
    const auto is_prefix = [&](const std::pair<Placed, bool>& part) {
      const Placed& p = part.first;
      const Node& n = node_of(p.value);
      const bool rising = n.op == &kLt || n.op == &kLe, falling = n.op == &kGt || n.op == &kGe;
      if (!part.second || (!rising && !falling)) return false;
      const auto a = operand(p, rising ? 0 : 1), b = operand(p, rising ? 1 : 0);
      if (!a || !b || lies_along(p, kQuery) || lies_along(before_views(*b), kKey)) return false;
      if (lies_along(p, kHead) && heads_ != kv_heads_) return false;
      const auto line = line_of(*a, roles_);
      return line && line->other > 0;
    };
    return std::all_of(term.lines.begin(), term.lines.end(), holds) &&
           std::all_of(term.others.begin(), term.others.end(), is_prefix);
  }

  // Some position of the other axis fulfils all lines: each lower bound of it is at most each upper one.
  // None: whatever the own position.
  std::optional<Value> without_other(const Term& term) const {
    std::vector<Line> lower{{-1, 0, 0}}, upper{{1, 0, 1 - Wide{roles_.others}}}, left;
    for (const Line& line : term.lines)
      (line.other < 0 ? lower : line.other > 0 ? upper : left).push_back(line);
    for (const Line& from : lower)
      for (const Line& to : upper) left.push_back(plus(from, to, 1));
    // Bounds of the own position, as far as there are any.
    Wide first = 0, last = Wide{roles_.owns} - 1;
    for (const Line& line : left) {
      if (line.own == 0) {
        if (line.constant > 0) last = -1;
      } else if (line.own > 0) {
        last = std::min(last, floor_div(-line.constant, line.own));
      } else {
        first = std::max(first, -floor_div(-line.constant, -line.own));
      }
    }
    std::optional<Value> seen;
    const auto also = [&](Value v) { seen = seen ? bit_and(*seen, v) : v; };
    if (first > last) return nothing();
    const Value position = iota(*mask_.graph, own_shape(), 0);
    if (first > 0) also(ge(position, static_cast<Index>(first)));
    if (last < roles_.owns - 1) also(le(position, static_cast<Index>(last)));
    for (Value v : term.of_own) also(v);
    return seen;
  }
  static Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

  // Positions of the axis asked for, as they lie in the scores.
  Shape own_shape() const { return asks_for_keys() ? Shape{roles_.owns} : Shape{roles_.owns, 1}; }
  Value nothing() const { return constant_int(*mask_.graph, DType::boolean, own_shape(), 0); }

  // Positions of the other axis one by one.
  Held by_looking(const std::vector<Placed>& of_both) const {
    // The mask as it stands, so that simplify sees that it implies the result (unmasked_rows).
    if (!asks_for_keys()) return {any(in_scores(mask_), {3}, Keep::yes), true};
    std::optional<Value> all;
    for (const Placed& p : of_both) all = all ? bit_and(*all, p.value) : p.value;
    const Shape& s = all->shape();
    const Index batch = extent(s, 3), heads = extent(s, kHead);
    const Value mask = in_scores(*all);
    if (heads == 1 || heads == kv_heads_) return {any(mask, {2}, Keep::yes)};
    const Shape apart{batch, kv_heads_, heads / kv_heads_, extent(s, kQuery), extent(s, kKey)};
    return {reshape(any(reshape(mask, apart), {2, 3}), {batch, kv_heads_, 1, extent(s, kKey)})};
  }
  static Value in_scores(Value v) {
    const Shape& s = v.shape();
    return reshape(v, {extent(s, 3), extent(s, kHead), extent(s, kQuery), extent(s, kKey)});
  }

  // A bool that broadcasts to q (B, H, Tq, D), or to k and v (B, Hkv, Tk, D).
  Value as_own(Value v) const {
    const Shape& s = v.shape();
    return reshape(v, {extent(s, 3), extent(s, kHead), extent(s, roles_.own), 1});
  }
  // The same in the shape in which it stands beside the scores.
  Value to_scores(Value seen) const {
    if (!asks_for_keys()) return seen;
    const Shape& s = seen.shape();
    if (s[1] == 1 || s[1] == heads_) return reshape(seen, {s[0], s[1], 1, s[2]});
    const Value apart = reshape(seen, {s[0], s[1], 1, 1, s[2]});
    return reshape(broadcast_to(apart, {s[0], s[1], heads_ / s[1], 1, s[2]}), {s[0], heads_, 1, s[2]});
  }

  Value mask_;
  Roles roles_;
  Index heads_, kv_heads_;
};

}  // namespace

Value Seen::used(Value x) const {
  for (const Value& s : seen) x = where(s, x, 0);
  return x;
}

Value Seen::restricted(Value mask) const { return condition ? bit_and(mask, *condition) : mask; }

Seen seen_keys(Value mask, const Shape& scores, Index kv_heads) {
  return SeenFinder(mask, scores, kv_heads, {kKey, kQuery, scores[3], scores[2]}).run();
}

Seen seeing_queries(Value mask, const Shape& scores, Index kv_heads) {
  return SeenFinder(mask, scores, kv_heads, {kQuery, kKey, scores[2], scores[3]}).run();
}

}  // namespace tilewright::ops
