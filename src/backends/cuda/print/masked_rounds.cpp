// The comparison of two loops, op by op, that finds the masks which only one of them has.
#include "backends/cuda/print/masked_rounds.h"

#include <algorithm>
#include <set>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

bool only_computes(const Op& op) {
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::program_id:
    case OpKind::scalar_param:
    case OpKind::arange:
    case OpKind::broadcast:
    case OpKind::reshape:
    case OpKind::cast:
    case OpKind::apply:
      return true;
    default:
      return false;
  }
}

// The operand that a mask leaves where it holds: x of where(mask, x, y), and b of a & b where a is known. Of
// a number, i of i + n where n is not: the index of rounds that step over others.
std::optional<int> left_by_mask(const Op& op, bool is_number, const std::map<ValueId, ValueId>& same) {
  if (op.kind != OpKind::apply) return std::nullopt;
  const auto is_there = [&](int i) { return same.count(op.operands[static_cast<std::size_t>(i)]) > 0; };
  if (op.prim == Prim::select && is_there(1)) return 1;
  if (op.prim == Prim::bit_and && is_there(0) != is_there(1)) return is_there(0) ? 0 : 1;
  if (is_number && op.prim == Prim::add && is_there(0) && !is_there(1)) return 0;
  return std::nullopt;
}

}  // namespace

std::optional<KnownMasks> known_masks(const tile::Kernel& kernel, const Op& masked, const Op& whole) {
  const tile::Block &a = masked.blocks[0], &b = whole.blocks[0];
  std::map<ValueId, ValueId> same;  // value of the masked loop → of the other one
  for (std::size_t i = 0; i < a.args.size(); ++i) same[a.args[i]] = b.args[i];
  const auto in_other = [&](ValueId v) {
    const auto found = same.find(v);
    return found == same.end() ? v : found->second;
  };
  KnownMasks masks;
  std::map<ValueId, const Op*> masked_values;
  std::set<const Op*> read;
  auto other = b.ops.begin();
  for (const Op& op : a.ops) {
    if (!op.blocks.empty()) return std::nullopt;
    Op renamed = op;
    std::transform(op.operands.begin(), op.operands.end(), renamed.operands.begin(), in_other);
    if (other != b.ops.end()) renamed.results = other->results;
    if (other != b.ops.end() && renamed.results.size() == op.results.size() && renamed == *other) {
      for (std::size_t i = 0; i < op.results.size(); ++i) same[op.results[i]] = other->results[i];
      for (ValueId v : op.operands)
        if (const auto from = masked_values.find(v); from != masked_values.end()) read.insert(from->second);
      ++other;
      continue;
    }
    const bool is_number = !op.results.empty() && kernel.type(op.results[0]).rank() == 0;
    if (const auto left = left_by_mask(op, is_number, same)) {
      const ValueId kept = op.operands[static_cast<std::size_t>(*left)];
      same[op.results[0]] = in_other(kept);
      masks.left[&op] = *left;
      masked_values[op.results[0]] = &op;
      if (const auto from = masked_values.find(kept); from != masked_values.end()) read.insert(from->second);
    } else if (op.kind == OpKind::load && !is_number) {
      masks.loads.insert(&op);
    } else if (!only_computes(op)) {
      return std::nullopt;
    }
  }
  if (other != b.ops.end()) return std::nullopt;
  std::erase_if(masks.left, [&](const auto& mask) { return read.count(mask.first) == 0; });
  return masks;
}

}  // namespace tilewright::cuda
