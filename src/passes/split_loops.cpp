// Writes the loops and the scalars that cut them.
#include "passes/split_loops.h"

#include "passes/whole_blocks.h"

#include <algorithm>
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

// An i64 scalar before the loops: a number, or a value.
struct Scalar {
  Index number = 0;
  ValueId value = -1;
  bool is_number() const { return value < 0; }
};

// With dots in its body or in loops inside it.
bool multiplies(const Op& loop) {
  bool dots = false, branches = false;
  tile::for_each_op(loop.blocks[0], [&](const Op& op) {
    dots = dots || op.kind == OpKind::dot;
    branches = branches || op.kind == OpKind::branch;
  });
  return dots && !branches;
}

bool acts(const Op& op) {
  return op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add ||
         op.kind == OpKind::yield;
}

class Splitter {
 public:
  explicit Splitter(const Kernel& kernel) : source_(kernel), out_(kernel) {}

  Kernel run() {
    out_.body.ops.clear();
    for (const Op& op : source_.body.ops)
      if (op.kind != OpKind::loop || !multiplies(op) || !split(op)) out_.body.ops.push_back(op);
    return std::move(out_);
  }

 private:
  bool split(const Op& loop) {
    const WholeBlocks whole = find_whole_blocks(source_, loop);
    if (whole.replaced.empty()) return false;
    if (whole.rounds && *whole.rounds < kFewestRounds) return false;
    const Scalar lower = known(loop.operands[0], whole.lower), upper = known(loop.operands[1], whole.upper);
    Scalar first = lower, end = upper;
    if (!whole.first.empty()) {
      first = extreme(Prim::max, whole.first);
      first = blocks_from(lower, sum(first, whole.step - 1), whole.step);
      first = apply(Prim::min, first, upper);
    }
    if (!whole.last.empty()) {
      end = extreme(Prim::min, whole.last);
      end = blocks_from(lower, sum(end, whole.step), whole.step);
      end = apply(Prim::max, apply(Prim::min, end, upper), first);
    }
    if (first.is_number() && end.is_number() && first.number >= end.number) return false;
    std::vector<ValueId> carried(loop.operands.begin() + 3, loop.operands.end());
    if (!whole.first.empty()) carried = append(copy(loop, {}), lower, first, carried);
    const bool nothing_after = end.is_number() && upper.is_number() && end.number >= upper.number;
    Op middle = copy(loop, whole.replaced);
    if (nothing_after) middle.results = loop.results;
    carried = append(std::move(middle), first, end, carried);
    if (!nothing_after) append(loop, end, upper, carried);
    return true;
  }

  // lower and as many whole steps as there are to `to`.
  Scalar blocks_from(const Scalar& lower, const Scalar& to, Index step) {
    const Scalar distance = apply(Prim::max, apply(Prim::sub, to, lower), Scalar{0, -1});
    const Scalar steps = apply(Prim::div, distance, Scalar{step, -1});
    return apply(Prim::add, lower, apply(Prim::mul, steps, Scalar{step, -1}));
  }

  std::vector<ValueId> append(Op loop, const Scalar& from, const Scalar& to,
                              const std::vector<ValueId>& carried) {
    const std::vector<ValueId> results = loop.results;
    loop.operands[0] = value(from), loop.operands[1] = value(to);
    std::copy(carried.begin(), carried.end(), loop.operands.begin() + 3);
    out_.body.ops.push_back(std::move(loop));
    return results;
  }

  // The loop with values of its own, `replaced` by what they equal, and without what nobody uses then.
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
    renew(out.results);
    renew(out.blocks[0].args);
    const auto follow_all = [&](std::vector<Op>& all, const auto& self) -> void {
      for (Op& op : all) {
        for (ValueId& o : op.operands) o = follow(o);
        for (tile::Block& inner : op.blocks) self(inner.ops, self);
      }
    };
    std::vector<Op>& ops = out.blocks[0].ops;
    follow_all(ops, follow_all);
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

  // --- scalars
  ValueId add(tile::ValueInfo info) {
    info.name.clear();
    out_.values.push_back(std::move(info));
    return static_cast<ValueId>(out_.values.size()) - 1;
  }
  ValueId write(Op op) {
    op.results = {add({{DType::i64, {}}, ""})};
    out_.body.ops.push_back(std::move(op));
    return out_.body.ops.back().results[0];
  }
  ValueId value(const Scalar& s) {
    return s.is_number() ? write({.kind = OpKind::constant, .number = {0, s.number}}) : s.value;
  }
  static Scalar known(ValueId v, const Affine& form) {
    return form.is_constant() ? Scalar{form.constant, -1} : Scalar{0, v};
  }

  Scalar apply(Prim prim, const Scalar& a, const Scalar& b) {
    if (a.is_number() && b.is_number()) {
      switch (prim) {
        case Prim::add:
          return {a.number + b.number, -1};
        case Prim::sub:
          return {a.number - b.number, -1};
        case Prim::mul:
          return {a.number * b.number, -1};
        case Prim::div:
          return {a.number / b.number, -1};
        case Prim::min:
          return {std::min(a.number, b.number), -1};
        default:
          return {std::max(a.number, b.number), -1};
      }
    }
    const auto is = [](const Scalar& s, Index number) { return s.is_number() && s.number == number; };
    if (((prim == Prim::add || prim == Prim::sub) && is(b, 0)) || (prim == Prim::mul && is(b, 1))) return a;
    if (prim == Prim::add && is(a, 0)) return b;
    const ValueId left = value(a), right = value(b);
    return {0, write({.kind = OpKind::apply, .prim = prim, .operands = {left, right}})};
  }
  Scalar sum(const Scalar& a, Index number) { return apply(Prim::add, a, {number, -1}); }

  Scalar extreme(Prim prim, const std::vector<Affine>& forms) {
    Scalar out = scalar(forms[0]);
    for (std::size_t i = 1; i < forms.size(); ++i) out = apply(prim, out, scalar(forms[i]));
    return out;
  }

  Scalar scalar(const Affine& form) {
    Scalar out{form.constant, -1};
    for (const Affine::Term& t : form.terms)
      out = apply(Prim::add, apply(Prim::mul, {0, atom(t)}, {t.factor, -1}), out);
    return out;
  }
  ValueId atom(const Affine::Term& t) {
    if (t.variable == Affine::Variable::program) return write({.kind = OpKind::program_id, .param = t.index});
    // What nothing is known of must not overflow: positions are far from these ends.
    constexpr Index kMost = Index{1} << 42;
    const Scalar low = apply(Prim::max, {0, t.index}, {-kMost, -1});
    return apply(Prim::min, low, {kMost, -1}).value;
  }

  const Kernel& source_;
  Kernel out_;
};

}  // namespace

Kernel split_masked_loops(const Kernel& kernel) { return Splitter(kernel).run(); }

}  // namespace tilewright::passes
