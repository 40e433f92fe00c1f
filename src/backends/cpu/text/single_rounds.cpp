// A loop of one round is its body, its arguments the values that it begins with.
#include "backends/cpu/text/single_rounds.h"

#include <optional>
#include <unordered_map>
#include <utility>

namespace tilewright::cpu {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

class RoundInliner {
 public:
  explicit RoundInliner(const Kernel& kernel) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      if (op.kind == OpKind::constant && kernel.type(op.results[0]).dtype == DType::i64)
        numbers_[op.results[0]] = op.number.i;
    });
  }

  Block in(Block block) {
    Block out{.args = std::move(block.args)};
    for (Op& op : block.ops) append(std::move(op), out.ops);
    return out;
  }

 private:
  void append(Op op, std::vector<Op>& to) {
    for (ValueId& v : op.operands) v = now(v);
    if (!runs_once(op)) {
      for (Block& inner : op.blocks) inner = in(std::move(inner));
      to.push_back(std::move(op));
      return;
    }
    Block& body = op.blocks[0];
    same_[body.args[0]] = op.operands[0];
    for (std::size_t i = 1; i < body.args.size(); ++i) same_[body.args[i]] = op.operands[i + 2];
    for (Op& inner : body.ops) {
      if (inner.kind != OpKind::yield) {
        append(std::move(inner), to);
        continue;
      }
      for (std::size_t i = 0; i < op.results.size(); ++i) same_[op.results[i]] = now(inner.operands[i]);
    }
  }

  bool runs_once(const Op& op) const {
    if (op.kind != OpKind::loop) return false;
    const std::optional<Index> lower = number(op.operands[0]), upper = number(op.operands[1]),
                               step = number(op.operands[2]);
    return lower && upper && step && *lower < *upper && *step >= *upper - *lower;
  }

  std::optional<Index> number(ValueId v) const {
    const auto found = numbers_.find(v);
    return found == numbers_.end() ? std::nullopt : std::optional<Index>(found->second);
  }
  ValueId now(ValueId v) const {
    const auto found = same_.find(v);
    return found == same_.end() ? v : found->second;
  }

  std::unordered_map<ValueId, Index> numbers_;
  std::unordered_map<ValueId, ValueId> same_;  // what stands for a loop's argument or result
};

}  // namespace

Kernel inline_single_rounds(Kernel kernel) {
  RoundInliner inliner(kernel);
  kernel.body = inliner.in(std::move(kernel.body));
  return kernel;
}

}  // namespace tilewright::cpu
