// Access: how a block load or store walks its view: which tile axis is contiguous, how wide an aligned access
// may be, and where bounds must be checked.
#pragma once

#include "backends/printer/value_range.h"

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::cuda {

class Access {
 public:
  Access(const tile::Kernel& kernel, const std::vector<printer::ValueRange>& ranges, const tile::Op& op);

  const tile::ViewParam& view() const { return *view_; }
  const tile::Op& op() const { return *op_; }
  const tile::TileType& tile() const { return *tile_; }
  int rank() const { return view_->rank(); }
  tile::ValueId start(int dim) const { return op_->operands[first_start_ + static_cast<std::size_t>(dim)]; }
  // The view dimension that tile axis `axis` walks, and the tile axis that walks `dim`, or -1.
  int dim_of(int axis) const { return op_->tile_dims[static_cast<std::size_t>(axis)]; }
  int axis_of(int dim) const;
  const tile::Dim& stride(int dim) const { return view_->strides[static_cast<std::size_t>(dim)]; }
  const tile::Dim& extent(int dim) const { return view_->extents[static_cast<std::size_t>(dim)]; }
  bool contiguous(int axis) const { return stride(dim_of(axis)) == tile::Dim{1, -1}; }

  // Elements of the widest access along `axis` that is aligned wherever it starts at a multiple of itself; at
  // most `limit_bytes`.
  Index widest(int axis, int limit_bytes) const;
  // Whether `vector` elements at a multiple of `vector` are where memory.cuh's load and store need them.
  bool aligned(int axis, Index vector) const;
  // The same of the view's own beginning.
  bool begins_aligned(Index vector) const;
  // Whether a check is needed: a bounded op whose block may leave the view along `dim`, at its start or its
  // end.
  bool checked_below(int dim) const { return op_->bounded && range(start(dim)).low < 0; }
  bool checked_above(int dim) const;
  // Whether the number of elements inside the view along `axis` is a multiple of `vector` (given aligned
  // starts).
  bool whole_vectors(int axis, Index vector) const;

 private:
  const printer::ValueRange& range(tile::ValueId v) const { return (*ranges_)[static_cast<std::size_t>(v)]; }
  Index tile_extent(int dim) const;

  const std::vector<printer::ValueRange>* ranges_;
  const tile::Op* op_;
  const tile::ViewParam* view_;
  const tile::TileType* tile_;
  std::size_t first_start_;
};

}  // namespace tilewright::cuda
