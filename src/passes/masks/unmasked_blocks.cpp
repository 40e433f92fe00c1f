// Comparisons of positions, solved for the induction variable at the corners of their tiles.
#include "passes/masks/unmasked_blocks.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Affine;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

// The elements of an index tile: base + low … base + high.
struct Positions {
  Affine base;
  Index low = 0, high = 0;
};

// Conditions of a block: each of these forms is at most 0.
using Needs = std::vector<Affine>;

class UnmaskedBlockFinder {
 public:
  UnmaskedBlockFinder(const Kernel& kernel, const Op& loop, std::span<const KnownBlocks> known)
      : kernel_(kernel), loop_(loop), known_(known), table_(kernel, tile::known_statically(kernel)) {
    for (const Op& op : kernel.body.ops) {
      if (&op == &loop) break;
      for (ValueId r : op.results) made_by_[r] = &op;
    }
    for (const auto& [value, op] : made_by_) before_.push_back(value);
    for (const Op& op : loop.blocks[0].ops)
      for (ValueId r : op.results) made_by_[r] = &op;
  }

  UnmaskedBlocks run() {
    out_.lower = table_.of(loop_.operands[0]), out_.upper = table_.of(loop_.operands[1]);
    const Affine& step = table_.of(loop_.operands[2]);
    if (!step.is_constant() || step.constant <= 0) return {};
    out_.step = step.constant;
    out_.rounds = table_.trip_count(loop_);
    for (const Op& op : loop_.blocks[0].ops)
      if (op.kind == OpKind::apply && op.prim == Prim::select && kernel_.type(op.results[0]).rank() > 0)
        look_at(op);
    return std::move(out_);
  }

 private:
  // A mask chooses between what is computed and a constant.
  void look_at(const Op& select) {
    for (const bool chosen : {true, false}) {
      const ValueId kept = select.operands[chosen ? 1 : 2], other = select.operands[chosen ? 2 : 1];
      if (!is_constant(other) || is_constant(kept)) continue;
      const auto needs = all(select.operands[0], chosen);
      if (!needs || !add(*needs)) continue;
      out_.replaced[select.results[0]] = kept;
      return;
    }
  }

  bool add(const Needs& needs) {
    std::vector<Affine> first, last;
    for (const Affine& n : needs) {
      const Index factor = n.factor_of(Affine::Variable::loop, loop_.blocks[0].args[0]);
      if (factor != 1 && factor != -1) return false;
      Affine bound = n;
      std::erase_if(bound.terms, [](const Affine::Term& t) { return t.variable == Affine::Variable::loop; });
      if (bound.terms.size() + 1 != n.terms.size() || !stands_before(bound)) return false;
      if (factor < 0) {
        first.push_back(bound);
        continue;
      }
      const auto negative = tile::add_scaled({}, bound, -1);
      if (!negative) return false;
      last.push_back(*negative);
    }
    for (auto [from, to] : {std::pair{&first, &out_.first}, std::pair{&last, &out_.last}})
      for (const Affine& a : *from)
        if (std::find(to->begin(), to->end(), a) == to->end()) to->push_back(a);
    return !needs.empty();
  }

  bool stands_before(const Affine& a) const {
    return std::all_of(a.terms.begin(), a.terms.end(), [&](const Affine::Term& t) {
      return t.variable == Affine::Variable::program ||
             (t.variable == Affine::Variable::opaque &&
              std::find(before_.begin(), before_.end(), t.index) != before_.end());
    });
  }

  const Op* maker(ValueId v) const {
    const auto it = made_by_.find(v);
    return it == made_by_.end() ? nullptr : it->second;
  }

  const Op* behind_shapes(ValueId v) const {
    const Op* op = maker(v);
    while (op && (op->kind == OpKind::broadcast || op->kind == OpKind::reshape)) op = maker(op->operands[0]);
    return op;
  }

  bool is_constant(ValueId v) const {
    const Op* op = behind_shapes(v);
    return op && op->kind == OpKind::constant;
  }

  // What makes all elements of a bool tile equal to `wanted`; none where that cannot be told.
  std::optional<Needs> all(ValueId v, bool wanted) const {
    if (const auto known = between(v, wanted)) return known;
    const Op* op = behind_shapes(v);
    if (!op || op->kind != OpKind::apply) return std::nullopt;
    switch (op->prim) {
      case Prim::bit_not:
        return all(op->operands[0], !wanted);
      case Prim::bit_and:
        return wanted ? both(*op, true) : std::nullopt;
      case Prim::bit_or:
        return wanted ? std::nullopt : both(*op, false);
      case Prim::le:
        return wanted ? at_most(*op, 0, 1, 0) : at_most(*op, 1, 0, 1);
      case Prim::lt:
        return wanted ? at_most(*op, 0, 1, 1) : at_most(*op, 1, 0, 0);
      case Prim::ge:
        return wanted ? at_most(*op, 1, 0, 0) : at_most(*op, 0, 1, 1);
      case Prim::gt:
        return wanted ? at_most(*op, 1, 0, 1) : at_most(*op, 0, 1, 0);
      default:
        return std::nullopt;
    }
  }

  // first <= the first element, and the last one < end, of what is known.
  std::optional<Needs> between(ValueId v, bool wanted) const {
    for (const Op* op = maker(v);; v = op->operands[0], op = maker(v)) {
      for (const KnownBlocks& k : known_) {
        if (k.tile != v || k.value != wanted) continue;
        const Affine& round = table_.of(loop_.blocks[0].args[0]);
        const auto first = tile::add_scaled(table_.of(k.first), round, -1);
        auto last = tile::add_scaled(round, table_.of(k.end), -1);
        if (last) last = tile::add_scaled(*last, {out_.step, {}}, 1);
        return first && last ? std::optional(Needs{*first, *last}) : std::nullopt;
      }
      if (!op || (op->kind != OpKind::broadcast && op->kind != OpKind::reshape)) return std::nullopt;
    }
  }

  std::optional<Needs> both(const Op& op, bool wanted) const {
    auto a = all(op.operands[0], wanted), b = all(op.operands[1], wanted);
    if (!a || !b) return std::nullopt;
    a->insert(a->end(), b->begin(), b->end());
    return a;
  }

  // operand a + apart <= operand b.
  std::optional<Needs> at_most(const Op& op, std::size_t a, std::size_t b, Index apart) const {
    const auto left = positions(op.operands[a]), right = positions(op.operands[b]);
    if (!left || !right) return std::nullopt;
    auto need = tile::add_scaled(left->base, right->base, -1);
    if (!need) return std::nullopt;
    need = tile::add_scaled(*need, {left->high - right->low + apart, {}}, 1);
    if (!need) return std::nullopt;
    return Needs{*need};
  }

  std::optional<Positions> positions(ValueId v) const {
    if (kernel_.type(v).dtype != DType::i64) return std::nullopt;
    if (kernel_.type(v).rank() == 0) return Positions{table_.of(v), 0, 0};
    const Op* op = maker(v);
    if (!op) return std::nullopt;
    if (op->kind == OpKind::arange) return Positions{{}, 0, kernel_.type(v).shape[0] - 1};
    if (op->kind == OpKind::constant) return Positions{{op->number.i, {}}, 0, 0};
    if (op->kind == OpKind::broadcast || op->kind == OpKind::reshape) return positions(op->operands[0]);
    if (op->kind != OpKind::apply) return std::nullopt;
    if (op->prim == Prim::mul) return multiplied(*op);
    if (op->prim != Prim::add && op->prim != Prim::sub) return std::nullopt;
    const bool adds = op->prim == Prim::add;
    const auto a = positions(op->operands[0]), b = positions(op->operands[1]);
    if (!a || !b) return std::nullopt;
    const auto base = tile::add_scaled(a->base, b->base, adds ? 1 : -1);
    if (!base) return std::nullopt;
    return Positions{*base, a->low + (adds ? b->low : -b->high), a->high + (adds ? b->high : -b->low)};
  }

  // Positions times a number: a difference of positions is a sum with such a product.
  std::optional<Positions> multiplied(const Op& op) const {
    const auto a = positions(op.operands[0]), b = positions(op.operands[1]);
    if (!a || !b) return std::nullopt;
    for (const auto& [number, other] : {std::pair{&*a, &*b}, std::pair{&*b, &*a}}) {
      if (!number->base.is_constant() || number->low != 0 || number->high != 0) continue;
      const Index by = number->base.constant;
      const auto base = tile::add_scaled({}, other->base, by);
      Index low = 0, high = 0;
      if (!base || __builtin_mul_overflow(other->low, by, &low) ||
          __builtin_mul_overflow(other->high, by, &high))
        return std::nullopt;
      return Positions{*base, std::min(low, high), std::max(low, high)};
    }
    return std::nullopt;
  }

  const Kernel& kernel_;
  const Op& loop_;
  const std::span<const KnownBlocks> known_;
  const tile::AffineTable table_;
  std::map<ValueId, const Op*> made_by_;  // before the loop or in it
  std::vector<ValueId> before_;
  UnmaskedBlocks out_;
};

}  // namespace

UnmaskedBlocks find_unmasked_blocks(const Kernel& kernel, const Op& loop,
                                    std::span<const KnownBlocks> known) {
  return UnmaskedBlockFinder(kernel, loop, known).run();
}

}  // namespace tilewright::passes
