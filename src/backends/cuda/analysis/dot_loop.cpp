// Walks from each dot back to the loads of its operands.
#include "backends/cuda/analysis/dot_loop.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::cuda {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

class LoopFinder {
 public:
  LoopFinder(const Kernel& kernel, const Op& loop) : kernel_(kernel), loop_(loop), body_(loop.blocks[0]) {
    for (const Op& op : body_.ops) {
      for (ValueId r : op.results) made_by_[r] = &op;
      for (ValueId o : op.operands) ++uses_[o];
    }
  }

  std::optional<DotLoop> run() {
    DotLoop out{&loop_, {}, true};
    std::set<const Op*> known;
    for (const Op& op : body_.ops) {
      if (!op.blocks.empty()) return std::nullopt;
      if (op.kind != OpKind::dot) continue;
      const std::optional<int> carried = accumulator(op);
      if (!carried) return std::nullopt;
      out.dots.push_back({&op, operand(op.operands[0]), operand(op.operands[1]), *carried});
      known.insert(&op);
      for (const DotOperand* side : {&out.dots.back().a, &out.dots.back().b})
        known.insert(side->ops.begin(), side->ops.end());
    }
    if (out.dots.empty()) return std::nullopt;
    out.only_dots = std::all_of(body_.ops.begin(), body_.ops.end(), [&](const Op& op) {
      return op.kind == OpKind::yield || known.count(&op) || makes_scalar(op);
    });
    return out;
  }

 private:
  bool makes_scalar(const Op& op) const {
    return op.results.size() == 1 && kernel_.type(op.results[0]).rank() == 0;
  }

  // The dot adds to a carried tile and its result is that tile's next value.
  std::optional<int> accumulator(const Op& dot) const {
    const auto arg = std::find(body_.args.begin() + 1, body_.args.end(), dot.operands[2]);
    if (arg == body_.args.end() || uses_.at(*arg) != 1) return std::nullopt;
    const auto carried = arg - body_.args.begin() - 1;
    const Op& yield = body_.ops.back();
    if (yield.operands[static_cast<std::size_t>(carried)] != dot.results[0]) return std::nullopt;
    if (uses_.at(dot.results[0]) != 1) return std::nullopt;
    return static_cast<int>(carried);
  }

  DotOperand operand(ValueId value) const {
    DotOperand out{value, {}, nullptr, false};
    std::set<const Op*> needed;
    gather_ops(value, needed);
    for (const Op& op : body_.ops)
      if (needed.count(&op)) out.ops.push_back(&op);
    const Op* last = maker(value);
    if (last && last->kind == OpKind::transpose) {
      out.transposed = true;
      last = maker(last->operands[0]);
    }
    if (last && last->kind == OpKind::load) out.load = last;
    return out;
  }

  const Op* maker(ValueId value) const {
    const auto it = made_by_.find(value);
    return it == made_by_.end() ? nullptr : it->second;
  }

  void gather_ops(ValueId value, std::set<const Op*>& needed) const {
    const Op* op = maker(value);
    if (!op || makes_scalar(*op) || !needed.insert(op).second) return;
    for (ValueId o : op->operands) gather_ops(o, needed);
  }

  const Kernel& kernel_;
  const Op& loop_;
  const Block& body_;
  std::map<ValueId, const Op*> made_by_;
  std::map<ValueId, int> uses_;
};

}  // namespace

std::optional<DotLoop> find_dot_loop(const Kernel& kernel, const Op& loop) {
  if (loop.kind != OpKind::loop) return std::nullopt;
  return LoopFinder(kernel, loop).run();
}

}  // namespace tilewright::cuda
