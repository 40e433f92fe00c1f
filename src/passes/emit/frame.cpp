#include "passes/emit/frame.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Builder;
using tile::Value;

bool Frame::ragged(int v) const {
  // A reduced variable that no loop walks fills the tile.
  if (v == loops_.reduced && !loops_.looped) return false;
  if (s_.any_size && (loops_.looped || !s_.nest.reduced[static_cast<std::size_t>(v)])) return true;
  return s_.extent(v) % block(v) != 0;
}

// Whether the tile holds two reduced variables.
bool Frame::reduces_rows() const {
  return !loops_.looped && frame_.has_rows && frame_.row >= 0 && loops_.reduced == frame_.column &&
         s_.nest.reduced[static_cast<std::size_t>(frame_.row)];
}

Value Frame::full(Value v) {
  if (!walks_tile()) return v;
  std::vector<Index> shape = v.type().shape;
  if (shape.empty()) shape.assign(frame_.has_rows ? 2 : 1, 1);
  shape[static_cast<std::size_t>(reduced_axis())] = block(loops_.reduced);
  if (reduces_rows()) shape[0] = frame_.rows;
  return k_.broadcast(v, shape);
}

std::vector<Index> Frame::whole_shape() const {
  if (frame_.has_rows) return {frame_.rows, frame_.columns};
  if (frame_.column >= 0) return {frame_.columns};
  return {};
}

Value Frame::fit(Value v, bool rows, bool columns) {
  if (!frame_.has_rows) return columns ? k_.broadcast(v, {frame_.columns}) : k_.reshape(v, {});
  if (rows && columns) return k_.broadcast(v, {frame_.rows, frame_.columns});
  if (rows) return k_.reshape(k_.broadcast(v, {frame_.rows, 1}), {frame_.rows});
  if (columns) return k_.reshape(k_.broadcast(v, {1, frame_.columns}), {frame_.columns});
  return v.rank() == 0 ? v : k_.reshape(v, {});
}

std::vector<int> Frame::Access::dims() const {
  std::vector<int> out;
  if (row_dim >= 0) out.push_back(row_dim);
  if (column_dim >= 0) out.push_back(column_dim);
  return out;
}

Frame::Access Frame::block_access(const Block& of) {
  Access a;
  BufferSource source = of.source;
  std::vector<Builder::SizeArg> extents;
  std::vector<tile::Dim> strides;
  source.offset += of.offset.constant();
  // What no axis of the tile walks is a scalar in any frame.
  const auto stride_of = [&](int v) {
    if (v < 0) return Index{0};
    return of.pages && v == of.pages->variable ? of.pages->stride : of.offset.factor(v);
  };
  const bool matrix = of.matrix && (stride_of(frame_.row) != 0 || stride_of(frame_.column) != 0);
  const int along = of.picked ? of.picked->along : -1;
  if (of.picked && along < 0) {
    extents.push_back(of.picked->extent);
    strides.push_back({of.picked->stride, -1});
    a.starts.push_back(of.picked->start);
  }
  for (int v = 0; v < static_cast<int>(s_.nest.extents.size()); ++v) {
    const Index stride = stride_of(v);
    const bool paged = of.pages && v == of.pages->variable;
    if (stride == 0 && !(matrix && is_tile(v))) continue;
    if (v == frame_.row) a.row_dim = static_cast<int>(extents.size());
    if (v == frame_.column) a.column_dim = static_cast<int>(extents.size());
    a.bounded = a.bounded || (is_tile(v) && ragged(v));
    extents.push_back(paged ? of.pages->size : v == along ? of.picked->extent : s_.extent(v));
    strides.push_back({stride, -1});
    if (v == along)
      a.starts.push_back(of.picked->start + s_.start(v));
    else
      a.starts.push_back(paged ? s_.start(v) % of.pages->size : s_.start(v));
  }
  for (int* dim : {&a.row_dim, &a.column_dim})
    if (matrix && *dim < 0) {  // no variable: one row, or one column
      *dim = static_cast<int>(extents.size());
      extents.push_back(1);
      strides.push_back({0, -1});
      a.starts.push_back(Index{0});
    }
  a.view = s_.view(source, of.dtype, extents, strides, of.name);
  return a;
}

// Whether a load's offsets begin inside the buffer and only go forward: under a mask they may begin
// elsewhere.
bool Frame::begins_inside(const Expr& load) const {
  for (int v = 0; v < static_cast<int>(s_.nest.extents.size()); ++v)
    if (load.offset.factor(v) < 0) return false;
  return load.offset.constant() >= 0 && load.offset.constant() < s_.buffer_elements(load.node);
}

// What lies closer along a tile's rows than along its columns is read as a tile of the other axes, and
// turned.
bool Frame::is_read_turned(Index row_stride, Index column_stride, DType dtype) const {
  if (frame_.matrix) return row_stride == 1 && column_stride != 1;
  return row_stride < column_stride && lie_close(row_stride, dtype);
}

bool Frame::varies(Value v, int along) const {
  const std::vector<Index>& shape = v.type().shape;
  return !shape.empty() && shape[!frame_.has_rows || along == frame_.row ? 0 : 1] != 1;
}

}  // namespace tilewright::passes
