// What a frame's tiles read of memory: blocks, blocks that an index or a table picks, and single elements.
#include "passes/emit/frame_values.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tilewright::passes {

using tile::Value;

std::optional<FrameValues::Picked> FrameValues::placed(const std::vector<std::pair<int, Index>>& dynamic) {
  Index unit = 0, reach = 1;
  for (auto [s, stride] : dynamic) {
    if (expr(s).kind != Expr::Kind::clamp || value(s).rank() != 0) return std::nullopt;
    unit = std::gcd(unit, stride);
  }
  if (unit == 0) return std::nullopt;
  Value start;
  for (auto [s, stride] : dynamic) {
    const Value step = stride == unit ? value(s) : value(s) * (stride / unit);
    start = reach == 1 && start.id() < 0 ? step : start + step;
    reach += expr(s).high * (stride / unit);
  }
  return Picked{start, unit, reach};
}

Value FrameValues::load(int s) {
  const Expr& m = expr(s);
  if (m.offset.is_affine() && m.mask < 0)
    if (const std::optional<Picked> at = placed(m.dynamic)) return load_block(s, at, std::nullopt);
  if (std::optional<Value> picked = load_picked_row(s)) return *picked;
  if (std::optional<Value> paged = load_from_page(s)) return *paged;
  if (frame_.row < 0 && frame_.column < 0 && m.dynamic.empty() && m.mask < 0 && !m.offset.is_affine())
    return k_.load(s_.flat_view(m.node, m.dtype), {index_value(m.offset)}, {.fill = 0.0});
  if (!m.offset.is_affine() || !m.dynamic.empty() || m.mask >= 0) return gather(m);
  return load_block(s, std::nullopt, std::nullopt);
}

// An index that is one scalar for the tile picks a row: a block load from there. What the mask forbids lies
// behind the last row, where a load gives 0.
std::optional<Value> FrameValues::load_picked_row(int s) {
  const Expr& m = expr(s);
  if (!m.offset.is_affine() || m.dynamic.size() != 1 || m.mask < 0) return std::nullopt;
  const auto [index, stride] = m.dynamic[0];
  const int along = moved_along(s_.nest, m);
  Value row = k_.cast(value(index), DType::i64);
  if (row.rank() != 0 || stride <= 0 || !begins_inside(m)) return std::nullopt;
  const Index rows = ceil_div(s_.buffer_elements(m.node) - m.offset.constant(), stride);
  if (along >= 0) {
    if (!is_tile(along)) return std::nullopt;
    // Rows from there on, as many as are inside: a view's ends are a load's. Far outside is as good as
    // outside.
    Value near = tile::max(tile::min(row, k_.literal_int(DType::i64, rows)),
                           k_.literal_int(DType::i64, -s_.extent(along)));
    return load_block(s, Picked{near, stride, rows, along}, std::nullopt);
  }
  Value valid = value(m.mask);
  if (valid.rank() != 0) return std::nullopt;
  return load_block(s, Picked{tile::where(valid, row, rows), stride, rows}, std::nullopt);
}

// The same where a table picks a page anew in each round of the loop: a block lies within one of them.
std::optional<Value> FrameValues::load_from_page(int s) {
  const Expr& m = expr(s);
  const std::optional<Pages> pages = pages_of(s_.nest, m);
  if (!pages || !is_tile(pages->variable) || pages->size % block(pages->variable) != 0 || !begins_inside(m))
    return std::nullopt;
  const auto [index, stride] = m.dynamic[0];
  Value valid = scalars().value(m.mask);
  Value page = k_.cast(scalars().value(index), DType::i64);
  const Index count = ceil_div(s_.buffer_elements(m.node) - m.offset.constant(), stride);
  return load_block(s, Picked{tile::where(valid, page, count), stride, count}, pages);
}

FrameValues& FrameValues::scalars() {
  if (!scalars_) scalars_ = std::make_unique<FrameValues>(s_, TileAxes{}, FrameLoops{true, -1});
  return *scalars_;
}

// The frame of the other axes.
FrameValues& FrameValues::turned() {
  const TileAxes axes{frame_.column, frame_.row, frame_.columns, frame_.rows, true};
  if (!turned_) turned_ = std::make_unique<FrameValues>(s_, axes, loops_);
  return *turned_;
}

// Whether an expr follows from where an element lies alone.
bool FrameValues::is_of_places(int s) const {
  const Expr& m = expr(s);
  const bool known = m.kind == Expr::Kind::index || m.kind == Expr::Kind::constant ||
                     m.kind == Expr::Kind::in_range || m.kind == Expr::Kind::op ||
                     m.kind == Expr::Kind::where;
  return known && std::all_of(m.operands.begin(), m.operands.end(), [&](int o) { return is_of_places(o); });
}

Value FrameValues::load_block(int s, const std::optional<Picked>& picked, const std::optional<Pages>& pages) {
  const Expr& m = expr(s);
  Access a = block_access({.offset = m.offset,
                           .source = EmitState::source_of(m.node),
                           .dtype = m.dtype,
                           .name = s_.buffer_name(m.node),
                           .picked = picked,
                           .pages = pages,
                           .matrix = frame_.matrix && s_.is_dot_operand(s)});
  const auto stride_of = [&](int v) {
    if (v < 0) return Index{0};
    return pages && v == pages->variable ? pages->stride : std::abs(m.offset.factor(v));
  };
  const Index row_stride = stride_of(frame_.row), column_stride = stride_of(frame_.column);
  tile::LoadOptions options;
  if (a.bounded || picked) options.fill = 0.0;
  const bool transposed =
      a.row_dim >= 0 && a.column_dim >= 0 && is_read_turned(row_stride, column_stride, m.dtype);
  if (a.row_dim >= 0 && a.column_dim >= 0) {
    options.shape = transposed ? std::vector<Index>{frame_.columns, frame_.rows}
                               : std::vector<Index>{frame_.rows, frame_.columns};
    options.dims = transposed ? std::vector<int>{a.column_dim, a.row_dim} : a.dims();
  } else if (a.column_dim >= 0) {
    options.shape = {frame_.columns};
    options.dims = {a.column_dim};
  } else if (a.row_dim >= 0) {
    options.shape = {frame_.rows};
    options.dims = {a.row_dim};
  }
  Value v = k_.load(a.view, a.starts, options);
  if (transposed) return k_.transpose(v);
  if (frame_.has_rows && v.rank() == 1) return k_.expand(v, a.row_dim >= 0 ? 1 : 0);
  return v;
}

Value FrameValues::dynamic_index(const IndexExpr& offset, const std::vector<std::pair<int, Index>>& dynamic) {
  Value i = index_value(offset);
  for (auto [s, stride] : dynamic) {
    Value step = k_.cast(value(s), DType::i64);
    i = i + (stride == 1 ? step : step * stride);
  }
  return i;
}

std::optional<Value> FrameValues::overhang_mask() {
  std::optional<Value> mask;
  for (int v : {frame_.row, frame_.column}) {
    if (v < 0 || !ragged(v)) continue;
    Value inside = variable(v) < s_.extent(v);
    mask = mask ? *mask & inside : inside;
  }
  return mask;
}

// Overhang is masked only along axes that the index or its mask varies along: elsewhere every element reads
// what one inside the space reads, and the value keeps the shape of what it is made of.
Value FrameValues::gather(const Expr& m) {
  if (is_tile(frame_.row) && is_tile(frame_.column) && m.offset.is_affine() && m.dynamic.empty() &&
      m.mask >= 0 && m.offset.depends_on(frame_.row) && is_of_places(m.mask) &&
      is_read_turned(std::abs(m.offset.factor(frame_.row)), std::abs(m.offset.factor(frame_.column)),
                     m.dtype))
    return k_.transpose(turned().gather(m));
  tile::View flat = s_.flat_view(m.node, m.dtype);
  Value index = dynamic_index(m.offset, m.dynamic);
  std::optional<Value> mask;
  if (m.mask >= 0) mask = value(m.mask);
  for (int v : {frame_.row, frame_.column}) {
    if (v < 0 || !ragged(v) || !(varies(index, v) || (m.mask >= 0 && varies(value(m.mask), v)))) continue;
    Value inside = variable(v) < s_.extent(v);
    mask = mask ? *mask & inside : inside;
  }
  return k_.gather(flat, {index}, {.mask = mask});
}

}  // namespace tilewright::passes
