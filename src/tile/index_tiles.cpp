// Follows a tile's definition back to arange and to scalars.
#include "tile/index_tiles.h"

#include <algorithm>

namespace tilewright::tile {

void IndexTiles::find_ops(const Block& block) {
  for (const Op& op : block.ops) {
    for (const ValueId result : op.results) ops_[static_cast<std::size_t>(result)] = &op;
    for (const Block& inner : op.blocks) find_ops(inner);
  }
}

std::optional<Range> IndexTiles::range(ValueId value) {
  if (ops_.empty()) {
    ops_.resize(kernel_.values.size());
    find_ops(kernel_.body);
  }
  const Maybe f = form(value);
  std::optional<Range> total = f ? scalars_.range(f->start) : std::nullopt;
  if (!total) return std::nullopt;
  for (std::size_t axis = 0; axis < f->steps.size(); ++axis) {
    Index reach = 0;
    if (__builtin_mul_overflow(f->steps[axis], shape(value)[axis] - 1, &reach)) return std::nullopt;
    Index& end = reach < 0 ? total->low : total->high;
    if (__builtin_add_overflow(end, reach, &end)) return std::nullopt;
  }
  return total;
}

const IndexTiles::Maybe& IndexTiles::form(ValueId value) {
  if (const auto known = forms_.find(value); known != forms_.end()) return known->second;
  Maybe found;
  const TileType& type = kernel_.type(value);
  const Op* op = ops_[static_cast<std::size_t>(value)];
  if (type.dtype == DType::i64 && type.rank() == 0)
    found = Form{scalars_.of(value), {}};
  else if (type.dtype == DType::i64 && op)
    found = form_of(*op);
  return forms_.emplace(value, std::move(found)).first->second;
}

IndexTiles::Maybe IndexTiles::form_of(const Op& op) {
  switch (op.kind) {
    case OpKind::constant:
      return Form{{op.number.i, {}}, std::vector<Index>(shape(op.results[0]).size())};
    case OpKind::arange:
      return Form{{}, {1}};
    case OpKind::broadcast:
      return stretched(op);
    case OpKind::reshape:
      return reshaped(op);
    case OpKind::transpose: {
      Maybe f = form(op.operands[0]);
      if (f) std::reverse(f->steps.begin(), f->steps.end());
      return f;
    }
    case OpKind::apply:
      return combined(op);
    default:
      return std::nullopt;
  }
}

// A unit axis that stretches takes no steps.
IndexTiles::Maybe IndexTiles::stretched(const Op& op) {
  Maybe f = form(op.operands[0]);
  if (!f) return f;
  const std::vector<Index>& from = shape(op.operands[0]);
  f->steps.resize(shape(op.results[0]).size());
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] == 1) f->steps[axis] = 0;
  return f;
}

// Unit axes come and go.
IndexTiles::Maybe IndexTiles::reshaped(const Op& op) {
  const Maybe f = form(op.operands[0]);
  if (!f) return std::nullopt;
  const std::vector<Index>& from = shape(op.operands[0]);
  Form made{f->start, {}};
  std::size_t at = 0;
  const auto skip_units = [&] {
    while (at < from.size() && from[at] == 1) ++at;
  };
  for (const Index extent : shape(op.results[0])) {
    if (extent == 1) {
      made.steps.push_back(0);
      continue;
    }
    skip_units();
    if (at == from.size() || from[at] != extent) return std::nullopt;
    made.steps.push_back(f->steps[at++]);
  }
  return made;
}

IndexTiles::Maybe IndexTiles::combined(const Op& op) {
  const auto operand = [&](std::size_t i) { return form(op.operands[i]); };
  const auto constant = [](const Maybe& f) {
    return f && f->start.is_constant() &&
           std::all_of(f->steps.begin(), f->steps.end(), [](Index step) { return step == 0; });
  };
  switch (op.prim) {
    case Prim::add:
      return add(operand(0), operand(1), 1);
    case Prim::sub:
      return add(operand(0), operand(1), -1);
    case Prim::neg:
      if (const Maybe a = operand(0)) return add(Form{{}, std::vector<Index>(a->steps.size())}, a, -1);
      return std::nullopt;
    case Prim::mul: {
      const Maybe a = operand(0), b = operand(1);
      if (!a || !b || (!constant(a) && !constant(b))) return std::nullopt;
      const bool first = constant(a);
      return add(Form{{}, std::vector<Index>(a->steps.size())}, first ? b : a,
                 (first ? a : b)->start.constant);
    }
    default:
      return std::nullopt;
  }
}

// a + factor · b, empty on overflow.
IndexTiles::Maybe IndexTiles::add(const Maybe& a, const Maybe& b, Index factor) {
  if (!a || !b) return std::nullopt;
  const std::optional<Affine> start = add_scaled(a->start, b->start, factor);
  if (!start) return std::nullopt;
  Form sum{*start, a->steps};
  for (std::size_t axis = 0; axis < sum.steps.size(); ++axis) {
    Index step = 0;
    if (__builtin_mul_overflow(b->steps[axis], factor, &step) ||
        __builtin_add_overflow(sum.steps[axis], step, &sum.steps[axis]))
      return std::nullopt;
  }
  return sum;
}

}  // namespace tilewright::tile
