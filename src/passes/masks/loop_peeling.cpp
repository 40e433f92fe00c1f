// Writes the loops and the scalars that cut them.
#include "passes/masks/loop_peeling.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tilewright::passes {

using tile::Affine;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

constexpr Index kFewestRounds = 4;  // of a loop that is worth a second text

// An i64 scalar before the loops: a sum of multiples of program ids and a number, or a value.
struct Scalar {
  std::optional<Affine> form;
  ValueId value = -1;  // of what has no form; of what has one, where the kernel has it already
  bool is_number() const { return form && form->is_constant(); }
  Index number() const { return form->constant; }
};
Scalar scalar_of(Index number) { return {Affine{number, {}}}; }

bool is_of_programs(const Affine& form) {
  return std::all_of(form.terms.begin(), form.terms.end(),
                     [](const Affine::Term& t) { return t.variable == Affine::Variable::program; });
}

// Whether a loop has dots, in its body or in loops inside it, and nothing that depends on the order of its
// rounds, as the place of an extreme does: of equal ones the first counts.
bool multiplies_in_any_order(const Op& loop) {
  bool dots = false, ordered = false;
  tile::for_each_op(loop.blocks[0], [&](const Op& op) {
    dots = dots || op.kind == OpKind::dot;
    const bool picks = op.kind == OpKind::reduce && tile::finds_place(op.monoid);
    ordered = ordered || picks || op.kind == OpKind::scan || op.kind == OpKind::argsort ||
              op.kind == OpKind::branch;
  });
  return dots && !ordered;
}

bool acts(const Op& op) {
  return op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add ||
         op.kind == OpKind::yield;
}

class LoopSplitter {
 public:
  LoopSplitter(const Kernel& kernel, std::span<const KnownBlocks> known)
      : source_(kernel), known_(known), table_(kernel, tile::known_statically(kernel)), out_(kernel) {}

  Kernel run() {
    out_.body.ops.clear();
    for (const Op& op : source_.body.ops)
      if (op.kind != OpKind::loop || !multiplies_in_any_order(op) || !split(op)) out_.body.ops.push_back(op);
    return std::move(out_);
  }

 private:
  // The rounds of the loop: those before `first` and from `end` on need the masks.
  struct Cut {
    Scalar lower, first, end, upper;
    Index step = 1;
    bool before = false, after = false;
  };

  bool split(const Op& loop) {
    const UnmaskedBlocks whole = find_unmasked_blocks(source_, loop, known_);
    if (whole.replaced.empty()) return false;
    if (whole.rounds && *whole.rounds < kFewestRounds) return false;
    const Cut cut = cut_of(loop, whole);
    if (!cut.before && !cut.after) return false;
    if (cut.first.is_number() && cut.end.is_number() && cut.first.number() >= cut.end.number()) return false;
    const std::vector<ValueId> carried(loop.operands.begin() + 3, loop.operands.end());
    Op edges = loop;
    for (ValueId& r : edges.results) r = add(source_.values[static_cast<std::size_t>(r)]);
    const Bounds masked = edges_of(edges, cut);
    Bounds inner = range(cut.first, cut.end);
    inner.upper = end_where_runs(masked, inner);
    const std::vector<ValueId> left = append(std::move(edges), masked, carried);
    append(copy(loop, whole.replaced), inner, left);
    return true;
  }

  // The cut of a loop. Rounds before or behind it, if there are any, have one of the loop's at least: so the
  // masked loop runs whenever the other one does.
  Cut cut_of(const Op& loop, const UnmaskedBlocks& whole) {
    Cut cut{.step = whole.step};
    cut.lower = cut.first = known(loop.operands[0], whole.lower);
    cut.upper = cut.end = known(loop.operands[1], whole.upper);
    if (!whole.last.empty()) {
      const Scalar last = extreme(Prim::min, whole.last);
      const Scalar end = blocks_from(cut.lower, sum(last, cut.step), cut.step);
      cut.after = !(end.is_number() && cut.upper.is_number() && end.number() >= cut.upper.number());
      if (cut.after)
        cut.end = blocks_from(cut.lower, apply(Prim::min, sum(last, cut.step), sum(cut.upper, -1)), cut.step);
    }
    if (!whole.first.empty()) {
      cut.before = true;
      cut.first = blocks_from(cut.lower, sum(extreme(Prim::max, whole.first), cut.step - 1), cut.step);
      if (!cut.after) cut.first = apply(Prim::max, cut.first, sum(cut.lower, cut.step));
      cut.first = apply(Prim::min, cut.first, cut.upper);
    }
    if (cut.after) cut.end = apply(Prim::max, apply(Prim::min, cut.end, cut.upper), cut.first);
    name(cut.first, "unmasked_first");
    name(cut.end, "unmasked_end");
    return cut;
  }

  struct Bounds {
    Scalar from, to;
    ValueId lower = -1, upper = -1;
  };
  Bounds range(const Scalar& from, const Scalar& to) { return {from, to, value(from), value(to)}; }

  // Both ends in one loop: from `first` on it goes on at `end`.
  Bounds edges_of(Op& loop, const Cut& cut) {
    if (!cut.after) return range(cut.lower, cut.first);
    if (!cut.before) return range(cut.end, cut.upper);
    // Never negative as it is; ranges know then that positions are not either.
    const Scalar skipped = apply(Prim::max, apply(Prim::sub, cut.end, cut.first), scalar_of(0));
    const Bounds bounds = range(cut.lower, apply(Prim::sub, cut.upper, skipped));
    name(skipped, "unmasked");
    name(bounds.to, "masked_end");
    const ValueId first = value(cut.first), by = value(skipped), none = value(scalar_of(0));
    tile::Block& body = loop.blocks[0];
    const ValueId round = body.args[0], inner = add({{DType::boolean, {}}, ""}),
                  more = add({{DType::i64, {}}, ""}),
                  at = add({{DType::i64, {}}, "masked_" + own_name(round, "round")});
    for_each_operand(body.ops, [&](ValueId& o) { o = o == round ? at : o; });
    const std::vector<Op> head{
        {.kind = OpKind::apply, .prim = Prim::lt, .operands = {round, first}, .results = {inner}},
        {.kind = OpKind::apply, .prim = Prim::select, .operands = {inner, none, by}, .results = {more}},
        {.kind = OpKind::apply, .prim = Prim::add, .operands = {round, more}, .results = {at}}};
    body.ops.insert(body.ops.begin(), head.begin(), head.end());
    return bounds;
  }

  // The end of `own`, or its beginning where a loop within `other` does not run.
  ValueId end_where_runs(const Bounds& other, const Bounds& own) {
    const std::optional<tile::Range> rounds = difference(other.to, other.from);
    if (rounds && rounds->low > 0) return own.upper;
    const ValueId runs = write(
        {.kind = OpKind::apply, .prim = Prim::lt, .operands = {other.lower, other.upper}}, DType::boolean);
    const ValueId end =
        write({.kind = OpKind::apply, .prim = Prim::select, .operands = {runs, own.upper, own.lower}});
    name({std::nullopt, end}, "unmasked_end");
    return end;
  }

  // lower and as many whole steps as there are to `to`.
  Scalar blocks_from(const Scalar& lower, const Scalar& to, Index step) {
    const Scalar distance = apply(Prim::sub, to, lower), ahead = apply(Prim::max, distance, scalar_of(0));
    const Scalar blocks = apply(Prim::div, ahead, scalar_of(step)),
                 whole = apply(Prim::mul, blocks, scalar_of(step)), edge = apply(Prim::add, lower, whole);
    name(distance, "distance");
    name(ahead, "distance");
    name(blocks, "blocks");
    name(whole, "whole_blocks");
    name(edge, "block_edge");
    return edge;
  }

  std::vector<ValueId> append(Op loop, const Bounds& bounds, const std::vector<ValueId>& carried) {
    const std::vector<ValueId> results = loop.results;
    loop.operands[0] = bounds.lower, loop.operands[1] = bounds.upper;
    std::copy(carried.begin(), carried.end(), loop.operands.begin() + 3);
    out_.body.ops.push_back(std::move(loop));
    return results;
  }

  // The loop with values of its own inside, `replaced` by what they equal, and without what nobody uses then.
  Op copy(const Op& loop, const std::map<ValueId, ValueId>& replaced) {
    Op out = loop;
    std::map<ValueId, ValueId> names;
    const auto renew = [&](std::vector<ValueId>& ids) {
      for (ValueId& id : ids) id = names[id] = add(source_.values[static_cast<std::size_t>(id)]);
    };
    const auto follow = [&](ValueId id) {
      for (auto r = replaced.find(id); r != replaced.end(); r = replaced.find(id)) id = r->second;
      return id;
    };
    renew(out.blocks[0].args);
    std::vector<Op>& ops = out.blocks[0].ops;
    for_each_operand(ops, [&](ValueId& o) { o = follow(o); });
    std::set<ValueId> used;
    for (std::size_t i = ops.size(); i-- > 0;) {
      const bool needed = acts(ops[i]) || std::any_of(ops[i].results.begin(), ops[i].results.end(),
                                                      [&](ValueId r) { return used.count(r) > 0; });
      if (!needed) {
        ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      used.insert(ops[i].operands.begin(), ops[i].operands.end());
      for (const tile::Block& inner : ops[i].blocks)
        tile::for_each_op(inner, [&](const Op& op) { used.insert(op.operands.begin(), op.operands.end()); });
    }
    const auto rename = [&](std::vector<Op>& all, const auto& self) -> void {
      for (Op& op : all) {
        for (ValueId& o : op.operands)
          if (const auto it = names.find(o); it != names.end()) o = it->second;
        for (tile::Block& inner : op.blocks) {
          renew(inner.args);
          self(inner.ops, self);
        }
        renew(op.results);
      }
    };
    rename(ops, rename);
    return out;
  }

  // "row" → "row.1", as the builder does.
  std::string another(const std::string& name) {
    const std::string base = name.substr(0, name.find('.'));
    std::string out;
    do {
      out = base + "." + std::to_string(++named_[base]);
    } while (is_taken(out));
    return out;
  }

  // The name of a value as it was given, without a number behind it.
  std::string own_name(ValueId v, const std::string& otherwise) const {
    const std::string& given = out_.values[static_cast<std::size_t>(v)].name;
    return given.empty() ? otherwise : given.substr(0, given.find('.'));
  }
  // Names what was written here for this alone.
  void name(const Scalar& s, const std::string& wish) {
    if (s.value < 0 || static_cast<std::size_t>(s.value) < source_.values.size()) return;
    std::string& own = out_.values[static_cast<std::size_t>(s.value)].name;
    if (own.empty()) own = is_taken(wish) ? another(wish) : wish;
  }
  bool is_taken(const std::string& name) const {
    return std::any_of(out_.values.begin(), out_.values.end(),
                       [&](const tile::ValueInfo& v) { return v.name == name; });
  }

  // --- scalars
  ValueId add(tile::ValueInfo info) {
    if (is_taken(info.name) && !info.name.empty()) info.name = another(info.name);
    out_.values.push_back(std::move(info));
    return static_cast<ValueId>(out_.values.size()) - 1;
  }
  static void for_each_operand(std::vector<Op>& ops, const std::function<void(ValueId&)>& fn) {
    for (Op& op : ops) {
      for (ValueId& o : op.operands) fn(o);
      for (tile::Block& inner : op.blocks) for_each_operand(inner.ops, fn);
    }
  }
  ValueId write(Op op, DType dtype = DType::i64) {
    op.results = {add({{dtype, {}}, ""})};
    out_.body.ops.push_back(std::move(op));
    return out_.body.ops.back().results[0];
  }
  ValueId value(const Scalar& s) {
    if (s.value >= 0) return s.value;
    if (s.is_number()) return write({.kind = OpKind::constant, .number = {0, s.number()}});
    const ValueId there = before_loop(*s.form);
    return there >= 0 ? there : written(*s.form);
  }
  // The value that the kernel has of it already; -1: none.
  ValueId before_loop(const Affine& form) const {
    for (const Op& op : out_.body.ops)
      for (const ValueId r : op.results)
        if (static_cast<std::size_t>(r) < source_.values.size() && source_.type(r).rank() == 0 &&
            source_.type(r).dtype == DType::i64 && table_.of(r) == form)
          return r;
    return -1;
  }
  static Scalar known(ValueId v, const Affine& form) {
    return is_of_programs(form) ? Scalar{form, form.is_constant() ? -1 : v} : Scalar{std::nullopt, v};
  }

  // The range of a - b; nothing where it is not known.
  std::optional<tile::Range> difference(const Scalar& a, const Scalar& b) const {
    if (!a.form || !b.form) return std::nullopt;
    const std::optional<Affine> form = tile::add_scaled(*a.form, *b.form, -1);
    return form ? table_.range(*form) : std::nullopt;
  }
  // What is known of the result without computing it in the kernel.
  std::optional<Scalar> folded(Prim prim, const Scalar& a, const Scalar& b) const {
    if (!a.form || !b.form) return std::nullopt;
    const auto of = [](std::optional<Affine> form) {
      return form ? std::optional(Scalar{std::move(form)}) : std::nullopt;
    };
    if (prim == Prim::add) return of(tile::add_scaled(*a.form, *b.form, 1));
    if (prim == Prim::sub) return of(tile::add_scaled(*a.form, *b.form, -1));
    if (prim == Prim::mul && b.is_number()) return of(tile::add_scaled({}, *a.form, b.number()));
    if (prim == Prim::div && b.is_number()) return of(quotient(*a.form, b.number()));
    if (prim != Prim::min && prim != Prim::max) return std::nullopt;
    const std::optional<tile::Range> more = difference(a, b);
    if (more && more->low >= 0) return prim == Prim::max ? a : b;
    if (more && more->high <= 0) return prim == Prim::max ? b : a;
    return std::nullopt;
  }
  // The form divided by `divisor`, where it is never negative and its factors are multiples of the divisor.
  std::optional<Affine> quotient(const Affine& form, Index divisor) const {
    const std::optional<tile::Range> range = table_.range(form);
    if (!range || range->low < 0 || divisor <= 0) return std::nullopt;
    Affine out;
    for (const Affine::Term& t : form.terms) {
      if (t.factor % divisor != 0) return std::nullopt;
      out.terms.push_back({t.variable, t.index, t.factor / divisor});
    }
    const Index rest = (form.constant % divisor + divisor) % divisor;
    out.constant = (form.constant - rest) / divisor;
    return out;
  }

  Scalar apply(Prim prim, const Scalar& a, const Scalar& b) {
    if (std::optional<Scalar> out = folded(prim, a, b)) return *out;
    const auto is = [](const Scalar& s, Index number) { return s.is_number() && s.number() == number; };
    if (((prim == Prim::add || prim == Prim::sub) && is(b, 0)) || (prim == Prim::mul && is(b, 1))) return a;
    if (prim == Prim::add && is(a, 0)) return b;
    return computed(prim, value(a), value(b));
  }
  Scalar computed(Prim prim, ValueId a, ValueId b) {
    return {std::nullopt, write({.kind = OpKind::apply, .prim = prim, .operands = {a, b}})};
  }
  Scalar sum(const Scalar& a, Index number) { return apply(Prim::add, a, scalar_of(number)); }

  Scalar extreme(Prim prim, const std::vector<Affine>& forms) {
    Scalar out = scalar(forms[0]);
    for (std::size_t i = 1; i < forms.size(); ++i) out = apply(prim, out, scalar(forms[i]));
    return out;
  }

  Scalar scalar(const Affine& form) {
    if (has_known_size(form)) return {form};
    Scalar out = scalar_of(form.constant);
    for (const Affine::Term& t : form.terms) {
      const Scalar atom = t.variable == Affine::Variable::program
                              ? Scalar{Affine{0, {{t.variable, t.index, 1}}}}
                              : bounded(t.index);
      out = apply(Prim::add, apply(Prim::mul, atom, scalar_of(t.factor)), out);
    }
    return out;
  }
  // What nothing is known of must not overflow: positions are far from these ends.
  static constexpr Index kMost = Index{1} << 42;
  Scalar bounded(ValueId v) {
    const Scalar low = computed(Prim::max, v, value(scalar_of(-kMost)));
    return computed(Prim::min, low.value, value(scalar_of(kMost)));
  }
  bool has_known_size(const Affine& form) const {
    return std::all_of(form.terms.begin(), form.terms.end(), [&](const Affine::Term& t) {
      return t.variable == Affine::Variable::program || is_clamped(t.index);
    });
  }
  // Whether a value is max(min(x, a), b) of numbers as of positions.
  bool is_clamped(ValueId v) const {
    const auto bounded_by = [&](const Op* op, Prim prim) {
      const Op* number =
          op && op->kind == OpKind::apply && op->prim == prim ? made_by(op->operands[1]) : nullptr;
      return number && number->kind == OpKind::constant && std::abs(number->number.i) <= kMost;
    };
    const Op* above = made_by(v);
    return bounded_by(above, Prim::max) && bounded_by(made_by(above->operands[0]), Prim::min);
  }
  const Op* made_by(ValueId v) const {
    for (const Op& op : out_.body.ops)
      if (std::find(op.results.begin(), op.results.end(), v) != op.results.end()) return &op;
    return nullptr;
  }
  // The sum of a form's terms, term by term.
  ValueId written(const Affine& form) {
    const ValueId terms = form.constant == 0 ? -1 : before_loop({0, form.terms});
    if (terms >= 0) return computed(Prim::add, terms, value(scalar_of(form.constant))).value;
    ValueId sum = -1;
    const auto add_term = [&](ValueId term) { sum = sum < 0 ? term : computed(Prim::add, sum, term).value; };
    for (const Affine::Term& t : form.terms) {
      const ValueId atom = t.variable == Affine::Variable::program
                               ? write({.kind = OpKind::program_id, .param = t.index})
                               : t.index;
      add_term(t.factor == 1 ? atom : computed(Prim::mul, atom, value(scalar_of(t.factor))).value);
    }
    if (form.constant != 0) add_term(value(scalar_of(form.constant)));
    return sum;
  }

  const Kernel& source_;
  const std::span<const KnownBlocks> known_;
  const tile::AffineTable table_;
  Kernel out_;
  std::map<std::string, int> named_;  // how many of a name there are
};

}  // namespace

Kernel peel_masked_loops(const Kernel& kernel, std::span<const KnownBlocks> known) {
  return LoopSplitter(kernel, known).run();
}

}  // namespace tilewright::passes
