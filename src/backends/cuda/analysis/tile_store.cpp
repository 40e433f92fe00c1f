// What of a result's view the copy engine can write.
#include "backends/cuda/analysis/tile_store.h"

#include <fmt/format.h>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ViewParam;

namespace {

Failure refuse(std::string_view why) {
  return failure(Failure::Kind::unsupported, fmt::format("tma_store_stages: {}", why));
}

// 16 bits as the threads exchange them, or words.
bool has_pieces_of(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32 || dtype == DType::i32;
}

bool touches_view(OpKind kind) {
  return kind == OpKind::load || kind == OpKind::store || kind == OpKind::gather || kind == OpKind::scatter ||
         kind == OpKind::atomic_add;
}

Result<TileStore> tile_store(const Kernel& kernel, const Op& store) {
  bool alone = true;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    alone = alone && (&op == &store || op.param != store.param || !touches_view(op.kind));
  });
  if (!alone) return refuse("the result's view is read or written elsewhere, too");
  const tile::TileType& tile = kernel.type(store.operands[0]);
  if (!has_pieces_of(tile.dtype)) return refuse("the result's elements have neither 16 nor 32 bits");
  const ViewParam& view = kernel.views[static_cast<std::size_t>(store.param)];
  const int inner = store.tile_dims[1], outer = store.tile_dims[0];
  if (const std::string why = why_no_tensor_map(view, inner); !why.empty())
    return refuse(fmt::format("the copy engine cannot write the result: {}", why));
  const Index columns = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
  if (tile.shape[0] % kPieceRows != 0 || tile.shape[1] % columns != 0)
    return refuse(fmt::format("the tile is no whole number of 64 by {}", columns));
  return TileStore{&store, plane_block(kernel, {.view = store.param,
                                                .dims = {inner, outer},
                                                .box = {columns, kPieceRows},
                                                .is_exact = true})};
}

}  // namespace

Result<std::vector<TileStore>> find_tile_stores(const Kernel& kernel, const Op& dot) {
  const std::vector<Index>& shape = kernel.type(dot.results[0]).shape;
  std::vector<TileStore> found;
  for (const Op& op : kernel.body.ops) {
    if (op.kind != OpKind::store || kernel.type(op.operands[0]).shape != shape) continue;
    auto store = tile_store(kernel, op);
    if (!store) return store.error();
    if (!found.empty() && store->columns() != found[0].columns())
      return refuse("tiles of 16 and of 32 bits are stored");
    found.push_back(std::move(*store));
  }
  if (found.empty()) return refuse("no tile as the product's is stored");
  return found;
}

}  // namespace tilewright::cuda
