// Spreads of values over threads, and the bytes of shared memory that exchanges between threads take.
#include "backends/cuda/layout/spread.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

Part spread_of(const printer::ElementLoop& loop, ThreadLayout layout, const std::vector<int>& axes) {
  bool rows = false, cols = false;
  for (int a : axes) {
    const int side = a < 0 ? -1 : side_of_axis(loop, layout, a);
    rows = rows || side == 0;
    cols = cols || side == 1;
  }
  return rows ? (cols ? Part::all : Part::rows) : (cols ? Part::cols : Part::one);
}

ThreadLayout layout_of_result(ThreadLayout loop, int side) {
  return {loop.frame, loop.part != Part::all ? Part::one : side == 1 ? Part::rows : Part::cols};
}

bool reduces_in_quads(const TileFrame& f, Part part) {
  return f.map == RowMap::mma && f.threads_per_row == kQuad && f.col_steps() % 4 == 0 && part != Part::rows;
}

Index column_exchange_bytes(const TileFrame& f, Part part, Index threads, Index state_bytes) {
  if (f.groups == 1) return 0;
  if (reduces_in_quads(f, part)) return threads / 32 * (f.cols + f.cols / 32) * state_bytes;
  const Index in_warp = f.threads_per_row < 32 ? std::min<Index>(32 / f.threads_per_row, f.groups) : 1;
  const Index parts = f.groups / in_warp;
  const Index values = part == Part::rows ? 1 : f.col_steps() * f.vector;
  return parts > 1 ? parts * f.threads_per_row * values * state_bytes : 0;
}

Index scan_bytes(const TileFrame& f, Part part, int side, DType dtype) {
  // What stands in single registers is computed in words.
  const Index bytes = std::max<Index>(static_cast<Index>(size_bytes(dtype)), part == Part::rows ? 4 : 1);
  if (side == 0 && f.map == RowMap::runs) {
    const Index in_warp = f.threads_per_row < 32 ? std::min<Index>(32 / f.threads_per_row, f.groups) : 1;
    const Index parts = f.groups / in_warp;
    const Index columns = f.threads_per_row * (part == Part::rows ? 1 : f.col_steps() * f.vector);
    return parts > 1 ? columns * (parts + 1) * bytes : 0;
  }
  if (side == 0)
    return f.groups > 1 ? Index{f.groups} * f.threads_per_row * (part == Part::rows ? 1 : f.vector) * bytes
                        : 0;
  const Index warps = f.threads_per_row > 32 ? f.threads_per_row / 32 : 1;
  const Index rows = part == Part::cols ? 1 : f.row_steps(), steps = part == Part::rows ? 1 : f.col_steps();
  return warps > 1 ? f.groups * rows * steps * warps * bytes : 0;
}

int row_parts(const TileFrame& f) {
  return (f.threads_per_row > 32 ? f.threads_per_row / 32 : 1) * f.cluster;
}

RelayoutStage relayout_stage(const tile::Kernel& kernel, const Op& op) {
  const tile::TileType& source = kernel.type(op.operands[0]);
  const auto bytes = static_cast<Index>(size_bytes(source.dtype));
  const bool transposes = op.kind == OpKind::transpose;
  RelayoutStage stage;
  if (op.kind == OpKind::argsort) {
    stage.pitch = source.shape.back();
    stage.positions = round_up(source.size() * bytes, 16);
    stage.bytes = stage.positions + source.size() * static_cast<Index>(sizeof(std::int32_t));
    return stage;
  }
  // An odd number of words a row keeps the elements of a column in different banks.
  stage.pitch = source.shape.back() + (transposes ? std::max<Index>(1, 4 / bytes) : 0);
  stage.bytes = (transposes ? source.shape[0] * stage.pitch : source.size()) * bytes;
  return stage;
}

DotStage dot_stage(const tile::Kernel& kernel, const Layouts& layouts, ThreadLayout result, const Op& dot) {
  const std::vector<Index>& shape = kernel.type(dot.results[0]).shape;
  const Part part = result.part;
  DotStage s;
  s.transposed = (part == Part::rows && shape[1] > 1) || (part == Part::cols && shape[0] > 1);
  s.a = dot.operands[s.transposed ? 1 : 0], s.b = dot.operands[s.transposed ? 0 : 1];
  s.m = shape[s.transposed ? 1 : 0], s.n = shape[s.transposed ? 0 : 1],
  s.k = kernel.type(dot.operands[0]).shape[1];
  const bool cols = part == Part::all || part == Part::cols;
  const Index vector = cols ? layouts.frame(result).vector : 1;
  s.pitch_a = round_up(s.k, 4) + (s.k % 4 == 0 ? 4 : 0);
  s.pitch_b = round_up(s.n, std::max<Index>(4, vector));
  s.offset_b = round_up(s.m * s.pitch_a, 16);
  s.bytes = (s.offset_b + s.k * s.pitch_b) * static_cast<Index>(size_bytes(kernel.type(s.a).dtype));
  return s;
}

}  // namespace tilewright::cuda
