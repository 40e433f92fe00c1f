// What of a view tensor cores and the copy engine can take.
#include "backends/cuda/analysis/tensor_operand.h"

#include <tilewright/tile/affine.h>

#include <fmt/format.h>

#include <string_view>

namespace tilewright::cuda {

using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

Failure refuse_dot(std::string why) { return failure(Failure::Kind::unsupported, "dot: " + std::move(why)); }

OperandReader::OperandReader(const Kernel& kernel, DotUnit unit)
    : kernel_(kernel), unit_(unit), uses_(tile::view_uses(kernel)) {
  tile::for_each_op(kernel.body, [&](const Op& op) {
    for (ValueId r : op.results) made_by_[r] = &op;
  });
}

Result<TensorOperand> OperandReader::read(const Op& load, int row_axis) const {
  const tile::TileType& tile = kernel_.type(load.results[0]);
  const auto row = static_cast<std::size_t>(row_axis), k = 1 - row;
  TensorOperand o{.load = &load, .dtype = tile.dtype};
  o.rows = tile.shape[row], o.depth = tile.shape[k];
  o.row_dim = load.tile_dims[row], o.k_dim = load.tile_dims[k];
  o.k_major = stride(o, o.k_dim) == tile::Dim{1, -1};
  std::set<int> axes;
  for (ValueId start : load.operands) gather_axes(start, axes);
  o.shared = axes.count(1) == 0;
  if (Status s = check(o); !s) return s.error();
  return o;
}

void OperandReader::gather_axes(ValueId v, std::set<int>& axes) const {
  const Op* op = maker(v);
  if (!op) return;  // a loop's induction value
  if (op->kind == OpKind::program_id) axes.insert(op->param);
  for (ValueId o : op->operands) gather_axes(o, axes);
}

bool OperandReader::follows(ValueId v, int grid_axis) const {
  std::set<int> axes;
  gather_axes(v, axes);
  return axes.count(grid_axis) > 0;
}

Status OperandReader::check(const TensorOperand& o) const {
  if (o.load->bounded && o.load->number.f != 0) return refuse_dot("a block is filled with other than zeros");
  const tile::ViewUse& use = uses_[static_cast<std::size_t>(o.load->param)];
  if (use.written || use.accumulated) return refuse_dot("an operand is written, too");
  const Index bytes = static_cast<Index>(size_bytes(view(o).dtype));
  const bool either_way = bytes == 2 || unit_ != DotUnit::wgmma;
  if (!either_way && !o.k_major)
    return refuse_dot(fmt::format("{} of {} does not lie by k", name(view(o).dtype), view(o).name));
  if (unit_ == DotUnit::fma_blocks) return Unit{};  // its blocks have rows of any length
  if (o.inner() * bytes % kPanelBytes != 0 || o.depth * bytes % kStepBytes != 0 || o.outer() % 8 != 0)
    return refuse_dot(fmt::format("blocks of {} are not whole rows of 128 bytes", view(o).name));
  return unit_ == DotUnit::wgmma ? check_copy_engine(o) : Unit{};
}

Status OperandReader::check_copy_engine(const TensorOperand& o) const {
  const auto fail = [&](std::string_view why) {
    return refuse_dot(fmt::format("the copy engine cannot read {}: {}", view(o).name, why));
  };
  if (const std::string why = why_no_tensor_map(view(o), o.inner_dim()); !why.empty()) return fail(why);
  if (o.outer() > kLargestBox) return fail("its blocks are more rows than it takes at once");
  return Unit{};
}

const Op* OperandReader::maker(ValueId v) const {
  const auto it = made_by_.find(v);
  return it == made_by_.end() ? nullptr : it->second;
}

const Op* OperandReader::number(ValueId v) const {
  const Op* op = maker(v);
  return op && op->kind == OpKind::constant ? op : nullptr;
}

bool OperandReader::is_zero_tile(ValueId v) const {
  for (const Op* op = maker(v); op && op->kind == OpKind::broadcast; op = maker(v)) v = op->operands[0];
  const Op* zero = number(v);
  return zero && zero->number.f == 0 && zero->number.i == 0;
}

Index OperandReader::trips(const Op& loop) const {
  return tile::AffineTable(kernel_, tile::known_statically(kernel_)).trip_count(loop).value_or(0);
}

TensorBlock tensor_block(const Kernel& kernel, const TensorOperand& o, Index share) {
  const tile::ViewParam& view = kernel.views[static_cast<std::size_t>(o.load->param)];
  const Index panel = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
  return plane_block(
      kernel,
      {.view = o.load->param, .dims = {o.inner_dim(), o.outer_dim()}, .box = {panel, o.outer() / share}});
}

TensorBlock plane_block(const Kernel& kernel, TensorBlock plane) {
  const tile::ViewParam& view = kernel.views[static_cast<std::size_t>(plane.view)];
  const std::set<int> walked(plane.dims.begin(), plane.dims.end());
  for (int d = view.rank() - 1; d >= 0; --d) {
    if (walked.count(d) > 0) continue;
    plane.dims.push_back(d);
    plane.box.push_back(1);
  }
  return plane;
}

bool copies_chunks(const tile::ViewParam& view, int inner) {
  const auto bytes = static_cast<Index>(size_bytes(view.dtype));
  if (view.strides[static_cast<std::size_t>(inner)] != tile::Dim{1, -1} ||
      !kBlockRules.takes_start(view.align_bytes))
    return false;
  for (int d = 0; d < view.rank(); ++d) {
    const tile::Dim& s = view.strides[static_cast<std::size_t>(d)];
    if (d != inner && (!s.is_constant() || !kBlockRules.takes_stride(s.value * bytes))) return false;
  }
  return true;
}

std::string why_no_tensor_map(const tile::ViewParam& view, int inner) {
  if (view.rank() < 2 || !kBlockRules.takes_axes(view.rank())) return "it has not 2 to 4 dimensions";
  if (view.strides[static_cast<std::size_t>(inner)] != tile::Dim{1, -1})
    return "no axis of its blocks is contiguous";
  if (!kBlockRules.takes_start(view.align_bytes)) return "it is not aligned to 16 bytes";
  return copies_chunks(view, inner) ? "" : "a stride is no multiple of 16 bytes";
}

}  // namespace tilewright::cuda
