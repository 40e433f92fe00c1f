// Who can write a result's view, the copy engine or threads by rows.
#include "backends/cuda/analysis/tile_store.h"

#include "backends/cuda/analysis/access.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ViewParam;

namespace {

Failure refuse(std::string_view why) {
  return failure(Failure::Kind::unsupported, fmt::format("store_stages: {}", why));
}

// 16 bits as the threads exchange them, or words.
bool has_pieces_of(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f32 || dtype == DType::i32;
}

bool touches_view(OpKind kind) {
  return kind == OpKind::load || kind == OpKind::store || kind == OpKind::gather || kind == OpKind::scatter ||
         kind == OpKind::atomic_add;
}

// Why threads cannot store rows of pieces.
std::string why_no_rows(const Kernel& kernel, const Op& store, int inner) {
  if (kernel.views[static_cast<std::size_t>(store.param)].strides[static_cast<std::size_t>(inner)] !=
      tile::Dim{1, -1})
    return "the result's rows are not contiguous";
  const std::vector<printer::ValueRange> ranges = printer::value_ranges(kernel);
  const Access access(kernel, ranges, store);
  for (int dim = 0; dim < access.rank(); ++dim)
    if (access.checked_below(dim)) return "a tile may begin outside of the result";
  return "";
}

Result<TileStore> tile_store(const Kernel& kernel, const Op& store) {
  bool alone = true, stored = false;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    stored = stored || &op == &store;
    alone = alone && (&op == &store || op.param != store.param || !touches_view(op.kind) ||
                      (!stored && loads_same_tile(kernel, op, store)));
  });
  if (!alone) return refuse("the result's view is read or written elsewhere, too");
  const tile::TileType& tile = kernel.type(store.operands[0]);
  if (!has_pieces_of(tile.dtype)) return refuse("the result's elements have neither 16 nor 32 bits");
  const ViewParam& view = kernel.views[static_cast<std::size_t>(store.param)];
  const int inner = store.tile_dims[1], outer = store.tile_dims[0];
  const bool by_engine = why_no_tensor_map(view, inner).empty();
  if (!by_engine)
    if (const std::string why = why_no_rows(kernel, store, inner); !why.empty()) return refuse(why);
  const Index columns = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
  if (tile.shape[0] % kPieceRows != 0 || tile.shape[1] % columns != 0)
    return refuse(fmt::format("the tile is no whole number of 64 by {}", columns));
  return TileStore{
      &store,
      plane_block(
          kernel,
          {.view = store.param, .dims = {inner, outer}, .box = {columns, kPieceRows}, .is_exact = true}),
      by_engine};
}

}  // namespace

bool loads_same_tile(const Kernel& kernel, const Op& op, const Op& store) {
  return op.kind == OpKind::load && op.param == store.param && op.tile_dims == store.tile_dims &&
         kernel.type(op.results[0]).shape == kernel.type(store.operands[0]).shape &&
         std::equal(op.operands.begin(), op.operands.end(), store.operands.begin() + 1, store.operands.end());
}

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
  if (std::any_of(found.begin(), found.end(), [](const TileStore& s) { return !s.by_engine; }))
    for (TileStore& s : found) s.by_engine = false;
  return found;
}

}  // namespace tilewright::cuda
