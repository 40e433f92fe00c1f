// What of a result's view the copy engine can write.
#include "backends/cuda/tile_store.h"

#include <fmt/format.h>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ViewParam;

namespace {

Failure refuse(std::string_view why) {
  return failure(Failure::Kind::unsupported, fmt::format("store_places: {}", why));
}

// 16 bits as the threads exchange them, or words.
bool has_pieces_of(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32 || dtype == DType::i32;
}

bool touches_view(OpKind kind) {
  return kind == OpKind::load || kind == OpKind::store || kind == OpKind::gather || kind == OpKind::scatter ||
         kind == OpKind::atomic_add;
}

Status check_view(const ViewParam& view, int inner_dim) {
  constexpr Index kAlign = 16;
  constexpr int kLargestRank = 4;
  const auto bytes = static_cast<Index>(size_bytes(view.dtype));
  if (view.rank() < 2 || view.rank() > kLargestRank)
    return refuse("the copy engine takes results of 2 to 4 dimensions");
  if (view.strides[static_cast<std::size_t>(inner_dim)] != tile::Dim{1, -1})
    return refuse("the rows of the result's tile are not contiguous");
  if (view.align_bytes < kAlign) return refuse("the result is not aligned to 16 bytes");
  for (int d = 0; d < view.rank(); ++d) {
    const tile::Dim& s = view.strides[static_cast<std::size_t>(d)];
    if (d != inner_dim && (!s.is_constant() || s.value <= 0 || s.value * bytes % kAlign != 0))
      return refuse("a stride of the result is no multiple of 16 bytes");
  }
  return Unit{};
}

}  // namespace

Result<TileStore> find_tile_store(const Kernel& kernel, const Op& dot) {
  const std::vector<Index>& shape = kernel.type(dot.results[0]).shape;
  const Op* found = nullptr;
  for (const Op& op : kernel.body.ops) {
    if (op.kind != OpKind::store || kernel.type(op.operands[0]).shape != shape) continue;
    if (found) return refuse("several tiles are stored");
    found = &op;
  }
  if (!found) return refuse("no tile as the product's is stored");
  bool alone = true;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    alone = alone && (&op == found || op.param != found->param || !touches_view(op.kind));
  });
  if (!alone) return refuse("the result's view is read or written elsewhere, too");
  const tile::TileType& tile = kernel.type(found->operands[0]);
  if (!has_pieces_of(tile.dtype)) return refuse("the result's elements have neither 16 nor 32 bits");
  const ViewParam& view = kernel.views[static_cast<std::size_t>(found->param)];
  const int inner = found->tile_dims[1], outer = found->tile_dims[0];
  if (Status s = check_view(view, inner); !s) return s.error();
  const Index columns = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
  if (tile.shape[0] % kPieceRows != 0 || tile.shape[1] % columns != 0)
    return refuse(fmt::format("the tile is no whole number of 64 by {}", columns));
  TileStore out{found, {found->param, {inner, outer}, {columns, kPieceRows}, /*is_result=*/true}};
  for (int d = view.rank() - 1; d >= 0; --d) {
    if (d == inner || d == outer) continue;
    out.block.dims.push_back(d);
    out.block.box.push_back(1);
  }
  return out;
}

}  // namespace tilewright::cuda
