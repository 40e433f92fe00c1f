// Weights of rows, found by what they are made of and what becomes of them.
#include "backends/cpu/text/row_weights.h"

#include <map>
#include <optional>
#include <vector>

namespace tilewright::cpu {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

// Below −2^31 neighbours of f32 are 256 apart: beside such a number a difference is 0, or e to it is 0.
constexpr double kFarBelow = -0x1p31;

class RowWeightFinder {
 public:
  explicit RowWeightFinder(const Kernel& kernel)
      : kernel_(kernel), made_by_(kernel.values.size()), used_by_(kernel.values.size()) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (const ValueId r : op.results) made_by_[static_cast<std::size_t>(r)] = &op;
      for (const ValueId v : op.operands) used_by_[static_cast<std::size_t>(v)].push_back(&op);
      if (op.kind != OpKind::loop) return;
      const tile::Block& body = op.blocks[0];
      for (std::size_t i = 1; i < body.args.size(); ++i)
        carried_[body.args[i]] = {.begins = op.operands[i + 2], .next = body.ops.back().operands[i - 1]};
    });
  }

  std::set<ValueId> run() const {
    std::set<ValueId> found;
    tile::for_each_op(kernel_.body, [&](const Op& op) {
      if (!applies(&op, Prim::exp) || kernel_.type(op.results[0]).dtype != DType::f32) return;
      const Op* difference = made_by(op.operands[0]);
      if (!applies(difference, Prim::sub)) return;
      const Largest of = largest_of(difference->operands[1], difference->operands[0]);
      if (of.is_it && summed(op.results[0], of.mask) == Summed::by_dots) found.insert(op.results[0]);
    });
    return found;
  }

 private:
  // Whether a value is a row's largest x, or the largest where a mask is true.
  struct Largest {
    bool is_it = false;
    std::optional<ValueId> mask = {};
  };
  struct Carried {
    ValueId begins, next;
  };

  const Op* made_by(ValueId v) const { return made_by_[static_cast<std::size_t>(v)]; }
  static bool applies(const Op* op, Prim prim) { return op && op->kind == OpKind::apply && op->prim == prim; }
  static bool moves(const Op* op) {
    return op && (op->kind == OpKind::broadcast || op->kind == OpKind::reshape);
  }

  // Beside rows of nothing, for which another number stands, that is a maximum over blocks: no number that
  // could be far above the row, beside which all of its weights would be nothing.
  Largest largest_of(ValueId value, ValueId x) const {
    const Op* op = made_by(value);
    if (op == nullptr) return {};
    if (op->kind == OpKind::reduce)
      return op->monoid == tile::Monoid::max ? chosen(op->operands[0], x) : Largest{};
    if (moves(op)) return largest_of(op->operands[0], x);
    if (applies(op, Prim::max))
      for (const std::size_t side : {0, 1})
        if (is_far_below(op->operands[1 - side]) || is_carried_maximum(op->operands[1 - side]))
          if (const Largest of = largest_of(op->operands[side], x); of.is_it) return of;
    if (applies(op, Prim::select) && is_of_nothing(op->operands[0], op->operands[2]))
      return largest_of(op->operands[2], x);
    return {};
  }

  // A value, or a part of it.
  Largest chosen(ValueId value, ValueId x) const {
    if (value == x) return {.is_it = true};
    const Op* op = made_by(value);
    if (!applies(op, Prim::select) || op->operands[1] != x || !is_far_below(op->operands[2])) return {};
    return {.is_it = true, .mask = op->operands[0]};
  }

  bool is_far_below(ValueId v) const {
    const Op* op = made_by(v);
    if (moves(op)) return is_far_below(op->operands[0]);
    return op && op->kind == OpKind::constant && op->number.f <= kFarBelow;
  }

  // The largest of the blocks before, of a loop that begins far below.
  bool is_carried_maximum(ValueId v) const {
    const auto found = carried_.find(v);
    if (found == carried_.end() || !is_far_below(found->second.begins)) return false;
    const Op* next = made_by(found->second.next);
    return applies(next, Prim::max) && (next->operands[0] == v || next->operands[1] == v);
  }

  // Whether a condition is that a value is minus infinity.
  bool is_of_nothing(ValueId condition, ValueId value) const {
    const Op* op = made_by(condition);
    return applies(op, Prim::eq) && op->operands[0] == value && is_far_below(op->operands[1]);
  }

  // Whether two values are computed alike, of nothing that memory or a loop decides.
  bool are_alike(ValueId a, ValueId b) const {
    if (a == b) return true;
    const Op *one = made_by(a), *other = made_by(b);
    if (one == nullptr || other == nullptr || one->operands.size() != other->operands.size()) return false;
    const OpKind kind = one->kind;
    if (kind != OpKind::apply && kind != OpKind::cast && kind != OpKind::constant && kind != OpKind::arange &&
        !moves(one))
      return false;
    for (std::size_t i = 0; i < one->operands.size(); ++i)
      if (!are_alike(one->operands[i], other->operands[i])) return false;
    Op same = *other;
    same.operands = one->operands;
    same.results = one->results;
    return same == *one && kernel_.type(a) == kernel_.type(b);
  }

  // What becomes of a value: something else, additions alone, or products of dots as well. The mask of the
  // largest alone may leave elements out: by another one the largest, which is 1, might go.
  enum class Summed : unsigned char { otherwise, alone, by_dots };
  Summed summed(ValueId v, const std::optional<ValueId>& mask) const {
    Summed all = Summed::alone;
    for (const Op* op : used_by_[static_cast<std::size_t>(v)]) {
      const bool adds = op->kind == OpKind::reduce && op->monoid == tile::Monoid::sum;
      const bool multiplies = op->kind == OpKind::dot && op->operands[2] != v;
      const bool chooses =
          applies(op, Prim::select) && op->operands[1] == v && mask && are_alike(op->operands[0], *mask);
      if (op->kind == OpKind::cast || chooses) {
        const Summed then = summed(op->results[0], mask);
        if (then == Summed::otherwise) return then;
        if (then == Summed::by_dots) all = then;
      } else if (!adds && !multiplies) {
        return Summed::otherwise;
      }
      if (multiplies) all = Summed::by_dots;
    }
    return all;
  }

  const Kernel& kernel_;
  std::vector<const Op*> made_by_;
  std::vector<std::vector<const Op*>> used_by_;
  std::map<ValueId, Carried> carried_;  // by a loop's argument
};

}  // namespace

std::set<ValueId> row_weights(const Kernel& kernel) { return RowWeightFinder(kernel).run(); }

}  // namespace tilewright::cpu
