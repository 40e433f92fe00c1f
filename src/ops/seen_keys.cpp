// Masks as conditions: "or" of "and" of comparisons. Of positions they are inequalities, out of which the
// query is eliminated (Fourier and Motzkin); exactly, since its factor is 1 or -1.
#include "ops/seen_keys.h"

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

bool lies_along(const Placed& p, int axis) {
  return std::find(p.axes.begin(), p.axes.end(), axis) != p.axes.end();
}

// query * q + key * k + constant.
struct Line {
  Wide query = 0, key = 0, constant = 0;
};
Line plus(const Line& a, const Line& b, Wide factor) {
  return {a.query + factor * b.query, a.key + factor * b.key, a.constant + factor * b.constant};
}

struct Lengths {
  Index queries = 0, keys = 0;
  // The largest and the least value.
  Wide most(const Line& l) const {
    return l.constant + std::max<Wide>(0, l.query * (queries - 1)) + std::max<Wide>(0, l.key * (keys - 1));
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

std::optional<Line> line_of(const Placed& p, const Lengths& lengths) {
  const Node& n = node_of(p.value);
  Line out;
  if (n.op == &kConstant) {
    if (is_float(n.type.dtype)) return std::nullopt;
    out.constant = n.attrs.integer("value");
  } else if (n.op == &kIota) {
    const int axis = p.axes[static_cast<std::size_t>(n.attrs.integer("axis"))];
    if (axis > kQuery) return std::nullopt;
    if (axis == kQuery) out.query = 1;
    if (axis == kKey) out.key = 1;
  } else if (n.op == &kAdd || n.op == &kSub || n.op == &kMul) {
    const auto left = operand(p, 0), right = operand(p, 1);
    if (!left || !right) return std::nullopt;
    const auto a = line_of(*left, lengths), b = line_of(*right, lengths);
    if (!a || !b) return std::nullopt;
    const auto is_number = [](const Line& l) { return l.query == 0 && l.key == 0; };
    if (n.op != &kMul)
      out = plus(*a, *b, n.op == &kAdd ? 1 : -1);
    else if (is_number(*a) || is_number(*b))
      out = is_number(*a) ? plus({}, *b, a->constant) : plus({}, *a, b->constant);
    else
      return std::nullopt;
  } else if (n.op == &kNeg || n.op == &kCast || n.op == &kExpand || n.op == &kReshape) {
    const auto from = operand(p, 0);
    if (!from || is_float(n.type.dtype) || is_bool(from->value.dtype())) return std::nullopt;
    const auto a = line_of(*from, lengths);
    if (!a) return std::nullopt;
    out = n.op == &kNeg ? plus({}, *a, -1) : *a;
  } else {
    return std::nullopt;
  }
  return lengths.fits(out, n.type.dtype) ? std::optional(out) : std::nullopt;
}

// Whether they are equal wherever the query has the number of the key.
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

// All of these hold: lines that are at most 0, bools that do not know the query, and others.
struct Term {
  std::vector<Line> lines;
  std::vector<Value> of_keys;
  std::vector<std::pair<Placed, bool>> others;  // and what they must be
};

class Finder {
 public:
  Finder(Value mask, const Shape& scores, Index kv_heads)
      : mask_(mask), lengths_{scores[2], scores[3]}, heads_(scores[1]), kv_heads_(kv_heads) {}

  SeenKeys run() {
    SeenKeys out{mask_, {}};
    if (lengths_.queries == 0 || lengths_.keys == 0) return out;
    std::vector<Placed> of_queries;
    split(placed(mask_), out.seen, of_queries);
    if (of_queries.empty()) return out;
    std::optional<Value> held = held_back(of_queries);
    if (!held) return out;
    out.seen.push_back(as_keys(*held));
    out.mask = bit_and(mask_, to_scores(out.seen.back()));
    return out;
  }

 private:
  // The parts of a conjunction: those that say the same to every query that shares keys, and the others.
  void split(const Placed& p, std::vector<Value>& of_keys, std::vector<Placed>& of_queries) const {
    const Node& n = node_of(p.value);
    if (says_it_of_keys(p.value.shape())) {
      of_keys.push_back(as_keys(p.value));
      return;
    }
    const bool view = n.op == &kExpand || n.op == &kReshape;
    if (view || n.op == &kBitAnd) {
      const auto left = operand(p, 0), right = view ? left : operand(p, 1);
      // As they lie: an operand that is no suffix of the scores' axes is one part.
      if (left && right && is_suffix(*left) && is_suffix(*right)) {
        split(*left, of_keys, of_queries);
        if (!view) split(*right, of_keys, of_queries);
        return;
      }
    }
    of_queries.push_back(p);
  }
  static bool is_suffix(const Placed& p) {
    const int rank = p.value.shape().rank();
    for (int i = 0; i < rank; ++i)
      if (const int axis = p.axes[static_cast<std::size_t>(i)]; axis >= 0 && axis != rank - 1 - i)
        return false;
    return true;
  }
  static Index extent(const Shape& s, int axis) { return s.rank() <= axis ? 1 : s[s.rank() - 1 - axis]; }
  bool says_it_of_keys(const Shape& s) const {
    return extent(s, kQuery) == 1 && (extent(s, kHead) == 1 || heads_ == kv_heads_);
  }

  // None where every key is seen by some query; else a bool that broadcasts to (B, Hkv, 1, Tk).
  std::optional<Value> held_back(const std::vector<Placed>& of_queries) const {
    std::optional<std::vector<Term>> terms = std::vector<Term>(1);
    for (const Placed& p : of_queries) terms = both(terms, terms_of(p, true));
    std::optional<Value> seen;
    if (!terms) return any_query(of_queries);
    for (const Term& term : *terms) {
      if (holds_at_own_place(term)) return std::nullopt;
      if (!term.others.empty()) return any_query(of_queries);
    }
    for (const Term& term : *terms) {
      const std::optional<Value> of_term = without_query(term);
      if (!of_term) return std::nullopt;
      seen = seen ? bit_or(*seen, *of_term) : *of_term;
    }
    return seen ? seen : constant_int(*mask_.graph, DType::boolean, {lengths_.keys}, 0);
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
        t.of_keys.insert(t.of_keys.end(), y.of_keys.begin(), y.of_keys.end());
        t.others.insert(t.others.end(), y.others.begin(), y.others.end());
        if (t.lines.size() + t.of_keys.size() + t.others.size() > kMostParts) return std::nullopt;
        out.push_back(std::move(t));
      }
    return out;
  }
  static Terms either(Terms a, const Terms& b) {
    if (!a || !b || a->size() + b->size() > kMostTerms) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }

  // Where `p` is `wanted`.
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
    if (!lies_along(p, kQuery) && !lies_along(p, kHead) && is_suffix(p))
      term.of_keys.push_back(wanted ? p.value : bit_not(p.value));
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
    const auto a = line_of(*left, lengths_), b = line_of(*right, lengths_);
    if (!a || !b) return std::nullopt;
    const Line apart = plus(*a, *b, -1), back = plus({}, apart, -1);
    if (apart.query < -1 || apart.query > 1) return std::nullopt;
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
  // Whether the query that has the key's number sees it, for every key.
  bool holds_at_own_place(const Term& term) const {
    if (lengths_.keys > lengths_.queries || !term.of_keys.empty()) return false;
    const auto holds = [&](const Line& line) {
      return lengths_.most({0, line.query + line.key, line.constant}) <= 0;
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

  // Some query from 0 to the last fulfils all lines: each lower bound of it is at most each upper one. None:
  // whatever the key.
  std::optional<Value> without_query(const Term& term) const {
    std::vector<Line> lower{{-1, 0, 0}}, upper{{1, 0, 1 - Wide{lengths_.queries}}}, left;
    for (const Line& line : term.lines)
      (line.query < 0 ? lower : line.query > 0 ? upper : left).push_back(line);
    for (const Line& from : lower)
      for (const Line& to : upper) left.push_back(plus(from, to, 1));
    // Bounds of the key, as far as there are keys.
    Wide first = 0, last = Wide{lengths_.keys} - 1;
    for (const Line& line : left) {
      if (line.key == 0) {
        if (line.constant > 0) last = -1;
      } else if (line.key > 0) {
        last = std::min(last, floor_div(-line.constant, line.key));
      } else {
        first = std::max(first, -floor_div(-line.constant, -line.key));
      }
    }
    std::optional<Value> seen;
    const auto also = [&](Value v) { seen = seen ? bit_and(*seen, v) : v; };
    ir::Graph& graph = *mask_.graph;
    const Value key = iota(graph, {lengths_.keys}, 0);
    if (first > last) return constant_int(graph, DType::boolean, {lengths_.keys}, 0);
    if (first > 0) also(ge(key, static_cast<Index>(first)));
    if (last < lengths_.keys - 1) also(le(key, static_cast<Index>(last)));
    for (Value v : term.of_keys) also(v);
    return seen;
  }
  static Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

  // Queries one by one.
  Value any_query(const std::vector<Placed>& of_queries) const {
    std::optional<Value> all;
    for (const Placed& p : of_queries) all = all ? bit_and(*all, p.value) : p.value;
    const Shape& s = all->shape();
    const Index batch = extent(s, 3), heads = extent(s, kHead);
    const Value mask = reshape(*all, {batch, heads, extent(s, kQuery), extent(s, kKey)});
    if (heads == 1 || heads == kv_heads_) return any(mask, {2}, Keep::yes);
    const Shape apart{batch, kv_heads_, heads / kv_heads_, extent(s, kQuery), extent(s, kKey)};
    return reshape(any(reshape(mask, apart), {2, 3}), {batch, kv_heads_, 1, extent(s, kKey)});
  }

  // What broadcasts to (B, Hkv, 1, Tk), beside k and v.
  static Value as_keys(Value v) {
    const Shape& s = v.shape();
    return reshape(v, {extent(s, 3), extent(s, kHead), extent(s, kKey), 1});
  }
  // The seen keys, bools, in the shape in which they stand beside the scores.
  Value to_scores(Value keys) const {
    const Shape& s = keys.shape();
    if (s[1] == 1 || s[1] == heads_) return reshape(keys, {s[0], s[1], 1, s[2]});
    const Value apart = reshape(keys, {s[0], s[1], 1, 1, s[2]});
    return reshape(broadcast_to(apart, {s[0], s[1], heads_ / s[1], 1, s[2]}), {s[0], heads_, 1, s[2]});
  }

  Value mask_;
  Lengths lengths_;
  Index heads_, kv_heads_;
};

}  // namespace

Value SeenKeys::used(Value x) const {
  for (const Value& s : seen) x = where(s, x, 0);
  return x;
}

SeenKeys seen_keys(Value mask, const Shape& scores, Index kv_heads) {
  return Finder(mask, scores, kv_heads).run();
}

}  // namespace tilewright::ops
