// Offsets, strides and bounds of accesses.
#include "backends/cpu/text/access.h"

#include <tilewright/base/error.h>

namespace tilewright::cpu {

using tile::Op;
using tile::OpKind;
using tile::ValueId;

Amount element_offset(const KernelText& k, const tile::ViewParam& view, const std::vector<Amount>& indices) {
  Sum sum;
  for (std::size_t d = 0; d < indices.size(); ++d) sum.add(indices[d], k.dim(view.strides[d]));
  return sum.total();
}

namespace {

// Whether start … start + count - 1 may leave [0, extent).
AccessBound make_bound(const KernelText& k, ValueId start, const tile::Dim& extent, int loop_axis,
                       Index count) {
  AccessBound b{.loop_axis = loop_axis, .start = k.amount(start), .extent = k.dim(extent)};
  const Range range = k.range(start);
  b.may_be_negative = range.low < 0;
  b.may_end_early = !extent.is_constant() || range.high >= kUnbounded || range.high + count > extent.value;
  // One program for each coordinate.
  if (count == 1 && k.is_program_of(start, extent)) b.may_end_early = false;
  return b;
}

}  // namespace

Access view_access(const KernelText& k, const Op& op, const std::vector<int>& axes,
                   const std::vector<Index>& shape, const std::vector<Index>& loop_shape) {
  const tile::ViewParam& view = k.kernel.views[static_cast<std::size_t>(op.param)];
  Access a{.base = k.views[static_cast<std::size_t>(op.param)], .name = view.name, .dtype = view.dtype};
  const std::size_t first = op.kind == OpKind::store ? 1 : 0;
  std::vector<Amount> starts;
  std::vector<int> walks(view.extents.size(), -1);
  std::vector<Index> counts(view.extents.size(), 1);
  for (std::size_t i = 0; i < op.tile_dims.size(); ++i) {
    const auto d = static_cast<std::size_t>(op.tile_dims[i]);
    counts[d] = shape[i];
    if (axes[i] < 0) continue;
    walks[d] = axes[i];
    TW_CHECK(a.stride[axes[i]].is(0), "two tile axes walk one loop axis");
    a.stride[axes[i]] = k.dim(view.strides[d]);
  }
  (void)loop_shape;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const ValueId start = op.operands[first + d];
    starts.push_back(k.amount(start));
    if (!op.bounded) continue;
    AccessBound b = make_bound(k, start, view.extents[d], walks[d], counts[d]);
    if (b.may_be_negative || b.may_end_early) a.bounds.push_back(std::move(b));
  }
  a.offset = element_offset(k, view, starts);
  return a;
}

Access buffer_access(const KernelText& k, ValueId v, const std::vector<int>& axes) {
  const Buffer& buffer = k.buffer(v);
  Access a{.base = buffer.name, .name = buffer.name, .dtype = buffer.dtype};
  Index strides[] = {0, 0};
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] >= 0) strides[axes[i]] += buffer.strides[i];
  for (const int axis : {0, 1}) a.stride[axis] = strides[axis];
  return a;
}

}  // namespace tilewright::cpu
