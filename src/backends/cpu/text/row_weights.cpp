// Weights of rows, found by what they are made of and what becomes of them.
#include "backends/cpu/text/row_weights.h"

#include <algorithm>
#include <vector>

namespace tilewright::cpu {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

class RowWeightFinder {
 public:
  explicit RowWeightFinder(const Kernel& kernel)
      : kernel_(kernel), made_by_(kernel.values.size()), used_by_(kernel.values.size()) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (const ValueId r : op.results) made_by_[static_cast<std::size_t>(r)] = &op;
      for (const ValueId v : op.operands) used_by_[static_cast<std::size_t>(v)].push_back(&op);
    });
  }

  std::set<ValueId> run() const {
    std::set<ValueId> found;
    tile::for_each_op(kernel_.body, [&](const Op& op) {
      if (applies(&op, Prim::exp) && kernel_.type(op.results[0]).dtype == DType::f32 &&
          is_below_largest(made_by(op.operands[0])) && is_summed(op.results[0]) == Summed::by_dots)
        found.insert(op.results[0]);
    });
    return found;
  }

 private:
  const Op* made_by(ValueId v) const { return made_by_[static_cast<std::size_t>(v)]; }
  static bool applies(const Op* op, Prim prim) { return op && op->kind == OpKind::apply && op->prim == prim; }

  bool is_below_largest(const Op* difference) const {
    return applies(difference, Prim::sub) && is_largest_of(difference->operands[1], difference->operands[0]);
  }

  // Whether a value is a row's largest x, or one that is not smaller or stands for an empty row.
  bool is_largest_of(ValueId value, ValueId x) const {
    const Op* op = made_by(value);
    if (op == nullptr) return false;
    const auto is_it = [&](ValueId v) { return is_largest_of(v, x); };
    if (op->kind == OpKind::reduce) return op->monoid == tile::Monoid::max && is_chosen(op->operands[0], x);
    if (op->kind == OpKind::broadcast || op->kind == OpKind::reshape) return is_it(op->operands[0]);
    if (applies(op, Prim::max)) return is_it(op->operands[0]) || is_it(op->operands[1]);
    if (applies(op, Prim::select)) return is_it(op->operands[1]) || is_it(op->operands[2]);
    return false;
  }

  // A value, or a part of it: what is left out is no weight of the row.
  bool is_chosen(ValueId value, ValueId x) const {
    const Op* op = made_by(value);
    return value == x || (applies(op, Prim::select) && (op->operands[1] == x || op->operands[2] == x));
  }

  // What becomes of a value: something else, additions alone, or products of dots as well.
  enum class Summed : unsigned char { otherwise, alone, by_dots };
  Summed is_summed(ValueId v) const {
    Summed all = Summed::alone;
    for (const Op* op : used_by_[static_cast<std::size_t>(v)]) {
      const bool adds = op->kind == OpKind::reduce && op->monoid == tile::Monoid::sum;
      const bool multiplies = op->kind == OpKind::dot && op->operands[2] != v;
      if (op->kind == OpKind::cast || (applies(op, Prim::select) && op->operands[0] != v)) {
        const Summed then = is_summed(op->results[0]);
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
};

}  // namespace

std::set<ValueId> row_weights(const Kernel& kernel) { return RowWeightFinder(kernel).run(); }

}  // namespace tilewright::cpu
