// The uses of each value, followed backwards from the stores until nothing changes (loops carry values
// around).
#include "backends/printer/accuracy.h"

#include <algorithm>

namespace tilewright::printer {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

// Operations whose result has about the relative error of their operands.
bool passes_relative_error(Prim prim) {
  switch (prim) {
    case Prim::mul:
    case Prim::div:
    case Prim::neg:
    case Prim::abs:
    case Prim::min:
    case Prim::max:
    case Prim::sqrt:
    case Prim::rsqrt:
    case Prim::reciprocal:
    case Prim::select:
      return true;
    default:
      return false;
  }
}

bool is_discrete(Prim prim) {
  return tile::info(prim).to_bool || prim == Prim::floor || prim == Prim::ceil || prim == Prim::round ||
         prim == Prim::trunc || prim == Prim::sign || prim == Prim::rem;
}

class Uses {
 public:
  explicit Uses(const Kernel& kernel) : kernel_(kernel), need_(kernel.values.size(), Accuracy::coarse) {}

  std::vector<Accuracy> run() {
    do {
      changed_ = false;
      visit(kernel_.body, nullptr);
    } while (changed_);
    return std::move(need_);
  }

 private:
  Accuracy at(ValueId v) const { return need_[static_cast<std::size_t>(v)]; }
  void limit(ValueId v, Accuracy need) {
    Accuracy& old = need_[static_cast<std::size_t>(v)];
    if (need >= old) return;
    old = need;
    changed_ = true;
  }
  void limit_all(const Op& op, Accuracy need) {
    for (ValueId v : op.operands) limit(v, need);
  }
  Accuracy stored(int view) const {
    switch (kernel_.views[static_cast<std::size_t>(view)].dtype) {
      case DType::bf16:
      case DType::f8e4m3:
      case DType::f8e5m2:
        return Accuracy::coarse;
      case DType::f16:
        return Accuracy::narrow;
      default:
        return Accuracy::exact;
    }
  }

  void visit(const Block& block, const Op* owner) {
    for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
      if (op->kind ==
          OpKind::loop)  // what leaves the loop, and what the next round reads, bounds what is yielded
        for (std::size_t i = 0; i < op->results.size(); ++i) {
          limit(op->blocks[0].args[i + 1], at(op->results[i]));
          limit(op->operands[i + 3], at(op->blocks[0].args[i + 1]));
        }
      for (const Block& inner : op->blocks) visit(inner, &*op);
      visit(*op, owner);
    }
  }

  void visit(const Op& op, const Op* owner) {
    const Accuracy result = op.results.empty() ? Accuracy::exact : at(op.results[0]);
    switch (op.kind) {
      case OpKind::store:
      case OpKind::scatter:
        limit_all({.operands = {op.operands.begin() + 1, op.operands.end()}}, Accuracy::exact);
        return limit(op.operands[0], stored(op.param));
      case OpKind::atomic_add:
        limit_all({.operands = {op.operands.begin() + 1, op.operands.end()}}, Accuracy::exact);
        return limit(op.operands[0], std::min(stored(op.param), Accuracy::narrow));
      case OpKind::broadcast:
      case OpKind::reshape:
      case OpKind::transpose:
        return limit(op.operands[0], result);
      case OpKind::cast: {
        const DType to = kernel_.type(op.results[0]).dtype;
        return limit(op.operands[0], to == DType::f32 || is_narrow_float(to) ? result : Accuracy::exact);
      }
      case OpKind::apply:
        return applied(op, result);
      case OpKind::reduce:
        if (op.monoid == tile::Monoid::argmax || op.monoid == tile::Monoid::argmin)
          return limit_all(op, Accuracy::exact);
        [[fallthrough]];
      case OpKind::scan:
      case OpKind::dot:
        return limit_all(op, std::min(result, Accuracy::narrow));
      case OpKind::yield:
        return yielded(op, *owner);
      case OpKind::loop:  // the carried operands were bounded with the block's arguments
        return limit_all({.operands = {op.operands.begin(), op.operands.begin() + 3}}, Accuracy::exact);
      default:
        return limit_all(op, Accuracy::exact);
    }
  }

  void applied(const Op& op, Accuracy result) {
    if (is_discrete(op.prim)) return limit_all(op, Accuracy::exact);
    if (op.prim == Prim::select) limit(op.operands[0], Accuracy::exact);
    const Accuracy need = passes_relative_error(op.prim) ? result : std::min(result, Accuracy::narrow);
    for (std::size_t i = op.prim == Prim::select ? 1 : 0; i < op.operands.size(); ++i)
      limit(op.operands[i], need);
  }

  void yielded(const Op& op, const Op& owner) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      limit(op.operands[i], at(owner.results[i]));
      if (owner.kind == OpKind::loop) limit(op.operands[i], at(owner.blocks[0].args[i + 1]));
    }
  }

  const Kernel& kernel_;
  std::vector<Accuracy> need_;
  bool changed_ = false;
};

}  // namespace

std::vector<Accuracy> needed_accuracy(const Kernel& kernel) { return Uses(kernel).run(); }

}  // namespace tilewright::printer
