// Loads that a packing function can do itself.
#include "backends/cpu/text/dot_operands.h"

#include "backends/printer/value_range.h"

#include <algorithm>
#include <vector>

namespace tilewright::cpu {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

class DotOperandFinder {
 public:
  explicit DotOperandFinder(const Kernel& kernel)
      : kernel_(kernel),
        ranges_(printer::value_ranges(kernel)),
        uses_(tile::view_uses(kernel)),
        made_by_(kernel.values.size()),
        used_by_others_(kernel.values.size()) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (const ValueId r : op.results) made_by_[static_cast<std::size_t>(r)] = &op;
      for (std::size_t i = 0; i < op.operands.size(); ++i)
        if (op.kind != OpKind::dot || i == 2)
          used_by_others_[static_cast<std::size_t>(op.operands[i])].push_back(&op);
    });
  }

  std::set<ValueId> run() {
    std::set<ValueId> found;
    tile::for_each_op(kernel_.body, [&](const Op& op) {
      if (op.kind != OpKind::dot) return;
      for (const ValueId v : {op.operands[0], op.operands[1]})
        if (is_block(v) || is_transposed_block(v)) found.insert(v);
    });
    return found;
  }

 private:
  // A block of memory that no other op needs as a tile.
  bool is_block(ValueId v) const {
    const Op* op = made_by_[static_cast<std::size_t>(v)];
    return op && reads_zero_outside(*op) && used_by_others_[static_cast<std::size_t>(v)].empty();
  }

  bool is_transposed_block(ValueId v) const {
    const Op* op = made_by_[static_cast<std::size_t>(v)];
    if (!op || op->kind != OpKind::transpose || !used_by_others_[static_cast<std::size_t>(v)].empty())
      return false;
    const Op* load = made_by_[static_cast<std::size_t>(op->operands[0])];
    return load && reads_zero_outside(*load) &&
           used_by_others_[static_cast<std::size_t>(op->operands[0])].size() == 1;
  }

  // The packing functions know where a block ends, not that it begins before its view, and fill with zeros.
  bool reads_zero_outside(const Op& op) const {
    if (op.kind != OpKind::load || op.tile_dims.size() != 2) return false;
    const tile::ViewUse& use = uses_[static_cast<std::size_t>(op.param)];
    if (use.written || use.accumulated) return false;  // perhaps between the load and the dot
    if (!op.bounded) return true;
    return op.number == tile::Number{} &&
           std::all_of(op.operands.begin(), op.operands.end(),
                       [&](ValueId start) { return ranges_[static_cast<std::size_t>(start)].low >= 0; });
  }

  const Kernel& kernel_;
  std::vector<printer::ValueRange> ranges_;
  std::vector<tile::ViewUse> uses_;
  std::vector<const Op*> made_by_;
  std::vector<std::vector<const Op*>> used_by_others_;
};

}  // namespace

std::set<ValueId> dot_operands_in_place(const Kernel& kernel) { return DotOperandFinder(kernel).run(); }

}  // namespace tilewright::cpu
