// The walk over a kernel's ops that counts who reads each scalar, and in which block.
#include "backends/cuda/print/scalar_uses.h"

#include "backends/printer/expressions.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

bool is_index_arithmetic(const Kernel& kernel, const Op& op) {
  if (op.kind != OpKind::apply) return false;
  const tile::TileType& type = kernel.type(op.results[0]);
  return type.rank() == 0 && (type.dtype == DType::i64 || is_bool(type.dtype));
}

struct PlacedOp {
  const Op* op;
  const tile::Block* block;
};

void list_ops(const tile::Block& block, std::vector<PlacedOp>& out) {
  for (const Op& op : block.ops) {
    out.push_back({&op, &block});
    for (const tile::Block& inner : op.blocks) list_ops(inner, out);
  }
}

}  // namespace

ScalarUses::ScalarUses(const Kernel& kernel)
    : unused_(kernel.values.size()), part_(kernel.values.size()), of_program_(kernel.values.size()) {
  std::vector<PlacedOp> ops;
  list_ops(kernel.body, ops);
  std::vector<int> uses(kernel.values.size(), 0);
  std::vector<PlacedOp> user(kernel.values.size());
  const auto at = [](ValueId v) { return static_cast<std::size_t>(v); };
  // All that reads a value stands behind it.
  for (auto p = ops.rbegin(); p != ops.rend(); ++p) {
    const bool arithmetic = is_index_arithmetic(kernel, *p->op);
    if (arithmetic && uses[at(p->op->results[0])] == 0) {
      unused_[at(p->op->results[0])] = true;
      continue;
    }
    for (ValueId v : p->op->operands) ++uses[at(v)], user[at(v)] = *p;
  }
  std::vector<int> operations(kernel.values.size(), 0);  // of a value's text
  for (const PlacedOp& p : ops) {
    if (p.op->results.size() != 1) continue;
    const std::size_t v = at(p.op->results[0]);
    const auto all = [&](const std::vector<bool>& known) {
      return std::all_of(p.op->operands.begin(), p.op->operands.end(),
                         [&](ValueId o) { return known[at(o)]; });
    };
    if (p.op->kind == OpKind::constant || p.op->kind == OpKind::program_id ||
        p.op->kind == OpKind::scalar_param)
      of_program_[v] = true;
    if (!is_index_arithmetic(kernel, *p.op) || unused_[v]) continue;
    // What stands in a loop may be printed in several places, as in the functions that copy its blocks.
    of_program_[v] = p.block == &kernel.body && all(of_program_);
    int own = 1;
    for (ValueId o : p.op->operands) own += part_[at(o)] ? operations[at(o)] : 0;
    operations[v] = own;
    const PlacedOp& by = user[v];
    part_[v] = uses[v] == 1 && by.block == p.block && is_index_arithmetic(kernel, *by.op) &&
               own < printer::kExpressionOperations;
  }
}

}  // namespace tilewright::cuda
