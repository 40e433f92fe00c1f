// The search for tiles that an epilogue loads and the copy engine can bring.
#include "backends/cuda/analysis/tile_load.h"

#include "backends/cuda/analysis/tile_store.h"

#include <algorithm>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

constexpr std::size_t kWidestElement = 4;  // of those that a map names (tensor_map.cpp)

// Scalars that are known before the product: arithmetic on program ids, arguments and numbers.
bool is_known_early(const OperandReader& reader, ValueId v) {
  const Op* op = reader.maker(v);
  if (!op) return false;
  switch (op->kind) {
    case OpKind::constant:
    case OpKind::scalar_param:
    case OpKind::program_id:
      return true;
    case OpKind::apply:
    case OpKind::cast:
      return std::all_of(op->operands.begin(), op->operands.end(),
                         [&](ValueId o) { return is_known_early(reader, o); });
    default:
      return false;
  }
}

}  // namespace

std::vector<TileLoad> find_tile_loads(const Kernel& kernel, const Op& dot) {
  const std::vector<Index>& shape = kernel.type(dot.results[0]).shape;
  const OperandReader reader(kernel, tile::DotUnit::wgmma);
  std::vector<TileLoad> found;
  for (const Op& op : kernel.body.ops) {
    if (op.kind != OpKind::load || kernel.type(op.results[0]).shape != shape) continue;
    const tile::ViewParam& view = kernel.views[static_cast<std::size_t>(op.param)];
    const int last = op.tile_dims[1], first = op.tile_dims[0];
    const bool by_rows = view.strides[static_cast<std::size_t>(last)] == tile::Dim{1, -1};
    const int inner = by_rows ? last : first;
    const Index across = shape[by_rows ? 0 : 1];
    if (!why_no_tensor_map(view, inner).empty() || size_bytes(view.dtype) > kWidestElement ||
        !std::all_of(op.operands.begin(), op.operands.end(),
                     [&](ValueId v) { return is_known_early(reader, v); }))
      continue;
    const Index panel = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
    found.push_back({.op = &op,
                     .block = plane_block(kernel, {.view = op.param,
                                                   .dims = {inner, by_rows ? first : last},
                                                   .box = {panel, std::min(across, kPieceRows)},
                                                   .is_exact = true})});
  }
  return found;
}

}  // namespace tilewright::cuda
