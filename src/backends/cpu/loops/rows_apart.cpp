// Walks the ops once: what mixes rows, or stores other than rows, is refused.
#include "backends/cpu/loops/rows_apart.h"

namespace tilewright::cpu {

using tile::Op;
using tile::OpKind;
using tile::TileType;

namespace {

bool is_tile(const TileType& type) { return type.rank() == 2 && type.shape[0] != 1; }

// Whether each row of what op gives depends on the same rows of its operands alone.
bool keeps_rows(const KernelText& k, const Op& op) {
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::program_id:
    case OpKind::scalar_param:
    case OpKind::arange:
    case OpKind::load:
    case OpKind::apply:
    case OpKind::cast:
    case OpKind::broadcast:
    case OpKind::store:
      return true;
    case OpKind::reshape: {
      // Between [rows] and [rows, 1].
      const TileType &from = k.kernel.type(op.operands[0]), &to = k.kernel.type(op.results[0]);
      return from.rank() > 0 && to.rank() > 0 && from.shape[0] == to.shape[0] &&
             (from.rank() < 2 || from.shape[1] == 1) && (to.rank() < 2 || to.shape[1] == 1);
    }
    case OpKind::reduce:
    case OpKind::scan:
      return k.kernel.type(op.operands[0]).rank() == 2 && op.axis == 1;
    default:
      return false;
  }
}

// Where the rows end that a store writes.
std::optional<AccessBound> end_of_rows(const KernelText& k, const Op& store, Index rows) {
  const TileType& type = k.kernel.type(store.operands[0]);
  if (type.rank() == 0 || type.shape[0] != rows || !store.bounded) return std::nullopt;
  // What is computed later has no name yet.
  for (std::size_t i = 1; i < store.operands.size(); ++i)
    if (!k.has_variable(store.operands[i])) return std::nullopt;
  std::vector<int> axes{0};
  if (type.rank() == 2) axes.push_back(1);
  for (const AccessBound& b : view_access(k, store, axes, type.shape, type.shape).bounds)
    if (b.loop_axis == 0 && !b.may_be_negative) return b;
  return std::nullopt;
}

}  // namespace

std::optional<RowsApart> rows_apart(const KernelText& k) {
  Index rows = 0;
  for (const Op& op : k.kernel.body.ops) {
    if (!keeps_rows(k, op)) return std::nullopt;
    for (const tile::ValueId v : op.results) {
      const TileType& type = k.kernel.type(v);
      if (!is_tile(type)) continue;
      if (rows != 0 && rows != type.shape[0]) return std::nullopt;
      rows = type.shape[0];
    }
  }
  std::optional<RowsApart> found;
  for (const Op& op : k.kernel.body.ops) {
    if (op.kind != OpKind::store) continue;
    const std::optional<AccessBound> end = end_of_rows(k, op, rows);
    if (!end || (found && (found->end.start != end->start || found->end.extent != end->extent)))
      return std::nullopt;
    found = RowsApart{rows, *end};
  }
  return found;
}

}  // namespace tilewright::cpu
