// Which loops have rows that are one long row in memory.
#include "backends/cpu/loops/joined_rows.h"

#include "backends/cpu/loops/loop_shape.h"
#include "backends/cpu/machine/fitted.h"

#include <algorithm>

namespace tilewright::cpu {

using printer::Instr;
using tile::OpKind;

namespace {

bool computes_lane_by_lane(const Instr& instr) {
  if (instr.kind == Instr::Kind::reload) return true;
  if (instr.kind == Instr::Kind::effect) return instr.op->kind == OpKind::store;
  if (instr.kind != Instr::Kind::compute) return false;
  const OpKind kind = instr.op->kind;
  return kind == OpKind::apply || kind == OpKind::cast || kind == OpKind::constant || kind == OpKind::load;
}

bool same(const AccessBound& a, const AccessBound& b) {
  return a.loop_axis == b.loop_axis && a.start == b.start && a.extent == b.extent &&
         a.may_be_negative == b.may_be_negative && a.may_end_early == b.may_end_early;
}

// Whether an access ends nowhere, or with the rows.
bool ends_with(const Access& access, const std::optional<AccessBound>& end) {
  return std::all_of(access.bounds.begin(), access.bounds.end(),
                     [&](const AccessBound& b) { return end && same(b, *end); });
}

}  // namespace

BesideRows beside_rows(const Access& access, Index columns) {
  const Amount &down = access.stride[0], &across = access.stride[1];
  if (across.is(1) && down.is(columns)) return BesideRows::along;
  if (across.is(1) && down.is(0)) return BesideRows::again;
  if (across.is(0)) return down.is(0) ? BesideRows::one : BesideRows::by_row;
  return BesideRows::apart;
}

std::optional<AccessBound> end_of_joined_rows(const KernelText& k, const LoopPart& part) {
  for (const int i : part.instrs) {
    const Instr& instr = part.at(i);
    if (instr.kind != Instr::Kind::effect || instr.op->kind != OpKind::store) continue;
    for (const AccessBound& b : instr_access(k, instr, part.loop->shape).bounds)
      if (b.loop_axis == 0 && !b.may_be_negative) return b;
    break;
  }
  return std::nullopt;
}

Index joined_columns(const KernelText& k, const LoopPart& part) {
  const std::vector<Index>& shape = part.loop->shape;
  if (shape.size() != 2 || shape[0] == 1 || shape[1] == 1 || k.kind.fetch_ahead) return 0;
  const Index rows = shape[0], columns = shape[1];
  const auto apart = static_cast<double>(rows * ceil_div(columns, k.lanes));
  if (static_cast<double>(ceil_div(rows * columns, k.lanes)) > kJoinedVectors * apart) return 0;
  const std::optional<AccessBound> end = end_of_joined_rows(k, part);
  for (const int i : part.instrs) {
    const Instr& instr = part.at(i);
    if (!computes_lane_by_lane(instr)) return 0;
    if (!is_access(instr)) continue;
    const Access access = instr_access(k, instr, shape);
    const BesideRows lie = beside_rows(access, columns);
    const bool stores = instr.kind == Instr::Kind::effect;
    if (lie == BesideRows::apart || (stores && lie != BesideRows::along)) return 0;
    if (!ends_with(access, end) || (stores && end && access.bounds.empty())) return 0;
  }
  return columns;
}

}  // namespace tilewright::cpu
