// Alignment and bounds of block accesses, from the ranges of their starts.
#include "backends/cuda/analysis/access.h"

#include "backends/cuda/machine/arch.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cuda {

using printer::range_of;
using printer::ValueRange;

Access::Access(const tile::Kernel& kernel, const std::vector<ValueRange>& ranges, const tile::Op& op)
    : ranges_(&ranges),
      op_(&op),
      view_(&kernel.views[static_cast<std::size_t>(op.param)]),
      tile_(&kernel.type(op.kind == tile::OpKind::store ? op.operands[0] : op.results[0])),
      first_start_(op.kind == tile::OpKind::store ? 1 : 0) {}

int Access::axis_of(int dim) const {
  for (std::size_t axis = 0; axis < op_->tile_dims.size(); ++axis)
    if (op_->tile_dims[axis] == dim) return static_cast<int>(axis);
  return -1;
}

Index Access::tile_extent(int dim) const {
  const int axis = axis_of(dim);
  return axis < 0 ? 1 : tile_->shape[static_cast<std::size_t>(axis)];
}

Index Access::widest(int axis, int limit_bytes) const {
  const auto size = static_cast<Index>(size_bytes(view_->dtype));
  if (!contiguous(axis)) return 1;
  Index common = std::gcd(view_->align_bytes, static_cast<Index>(limit_bytes)) / size;
  if (common == 0) common = 1;
  for (int dim = 0; dim < rank(); ++dim) {
    // Elements between two places that this dimension can put a block at.
    Index step = range(start(dim)).divisor;
    if (dim != dim_of(axis) && tile_extent(dim) > 1) step = 1;
    if (dim == dim_of(axis)) {
      common = std::gcd(common, step);
      continue;
    }
    const ValueRange stride = range_of(this->stride(dim));
    if (step == 0 || stride.divisor == 0) continue;
    common = std::gcd(common, std::gcd(step, common) * std::gcd(stride.divisor, common));
  }
  return common & -common;
}

bool Access::aligned(int axis, Index vector) const {
  const auto size = static_cast<Index>(size_bytes(view_->dtype));
  const Index bytes = vector * size;
  return widest(axis, kWidestAccess) * size >= std::min(kWidestAccess, bytes & -bytes);
}

bool Access::begins_aligned(Index vector) const {
  return view_->align_bytes %
             std::min(kWidestAccess, vector * static_cast<Index>(size_bytes(view_->dtype))) ==
         0;
}

bool Access::checked_above(int dim) const {
  if (!op_->bounded) return false;
  const ValueRange& s = range(start(dim));
  return !(s.bounded() && extent(dim).is_constant() && s.high <= extent(dim).value - tile_extent(dim));
}

bool Access::whole_vectors(int axis, Index vector) const {
  const int dim = dim_of(axis);
  return extent(dim).is_constant() && extent(dim).value % vector == 0 &&
         range(start(dim)).divisor % vector == 0;
}

}  // namespace tilewright::cuda
