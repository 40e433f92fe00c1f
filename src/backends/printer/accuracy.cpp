// The uses of each value, followed backwards from the stores until nothing changes (loops carry values
// around).
#include "backends/printer/accuracy.h"

#include "backends/printer/powers_below.h"

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

Accuracy stored_accuracy(const Kernel& kernel, int view) {
  switch (kernel.views[static_cast<std::size_t>(view)].dtype) {
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

// Terms of a sum from which on its own roundings may err by as much as short exponentials in it.
constexpr Index kManyTerms = 1024;

// Σ e^(x - max x) over many x that are read from memory. A short exponential errs by 2^-22 and, by the
// rounding of (x - max x)·log2 e, by d·2^-24 at a distance of d. The largest term is 1, so that the sum errs
// by 2^-22 + 2^-24 · Σ d e^-d / Σ e^-d, and that mean distance is below ln n (it is the entropy of the terms
// less the logarithm of their sum): 2^-20 for a million terms, where adding them up may cost n · 2^-24 in the
// worst order and takes (terms of a thread + 20) · 2^-24 in ours.
bool is_long_sum_of_powers(const Kernel& kernel, const std::vector<const Op*>& by, const Op& sum) {
  const auto powers = powers_below(by, sum);
  if (!powers) return false;
  const std::vector<Index>& shape = kernel.type(powers->x).shape;
  const Op* source = behind(by, OpKind::cast, powers->x);
  return shape[static_cast<std::size_t>(sum.axis)] >= kManyTerms && source && source->kind == OpKind::load;
}

// What an op that is no control needs of operand i, when `result` is needed of its result.
Accuracy operand_need(const Kernel& kernel, const std::vector<const Op*>& by, const Op& op, std::size_t i,
                      Accuracy result) {
  switch (op.kind) {
    case OpKind::store:
    case OpKind::scatter:
      return i == 0 ? stored_accuracy(kernel, op.param) : Accuracy::exact;
    case OpKind::atomic_add:
      return i == 0 ? std::min(stored_accuracy(kernel, op.param), Accuracy::narrow) : Accuracy::exact;
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::transpose:
      return result;
    case OpKind::cast: {
      const DType to = kernel.type(op.results[0]).dtype;
      return to == DType::f32 || is_narrow_float(to) ? result : Accuracy::exact;
    }
    case OpKind::apply:
      if (is_discrete(op.prim) || (op.prim == Prim::select && i == 0)) return Accuracy::exact;
      return passes_relative_error(op.prim) ? result : std::min(result, Accuracy::narrow);
    case OpKind::reduce:
      if (tile::finds_place(op.monoid)) return Accuracy::exact;
      return is_long_sum_of_powers(kernel, by, op) ? Accuracy::narrow : std::min(result, Accuracy::narrow);
    case OpKind::scan:
    case OpKind::dot:
      return std::min(result, Accuracy::narrow);
    default:
      return Accuracy::exact;
  }
}

class Uses {
 public:
  explicit Uses(const Kernel& kernel)
      : kernel_(kernel), by_(definitions(kernel)), need_(kernel.values.size(), Accuracy::coarse) {}

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
    if (op.kind == OpKind::yield) return yielded(op, *owner);
    // What a loop carries was bounded with the block's arguments.
    const std::size_t count = op.kind == OpKind::loop ? 3 : op.operands.size();
    const Accuracy result = op.results.empty() ? Accuracy::exact : at(op.results[0]);
    for (std::size_t i = 0; i < count; ++i) limit(op.operands[i], operand_need(kernel_, by_, op, i, result));
  }

  void yielded(const Op& op, const Op& owner) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      limit(op.operands[i], at(owner.results[i]));
      if (owner.kind == OpKind::loop) limit(op.operands[i], at(owner.blocks[0].args[i + 1]));
    }
  }

  const Kernel& kernel_;
  const std::vector<const Op*> by_;
  std::vector<Accuracy> need_;
  bool changed_ = false;
};

}  // namespace

std::vector<Accuracy> needed_accuracy(const Kernel& kernel) { return Uses(kernel).run(); }

std::vector<Accuracy> accuracy_in_loop(const Kernel& kernel, const ElementLoop& loop,
                                       const std::vector<Accuracy>& of_values) {
  std::vector<Accuracy> needed(loop.body.size(), Accuracy::coarse), out = of_values;
  const std::vector<const Op*> by = definitions(kernel);
  for (std::size_t i = loop.body.size(); i-- > 0;) {
    const Instr& in = loop.body[i];
    const bool computes = in.kind == Instr::Kind::compute;
    const Accuracy result = computes       ? needed[i]
                            : in.value < 0 ? Accuracy::exact
                                           : of_values[static_cast<std::size_t>(in.value)];
    if (computes && in.value >= 0) out[static_cast<std::size_t>(in.value)] = result;
    for (std::size_t k = 0; k < in.operands.size(); ++k) {
      if (in.operands[k].is_scalar()) continue;
      Accuracy& need = needed[static_cast<std::size_t>(in.operands[k].instr)];
      need =
          std::min(need, in.kind == Instr::Kind::keep ? result : operand_need(kernel, by, *in.op, k, result));
    }
  }
  return out;
}

}  // namespace tilewright::printer
