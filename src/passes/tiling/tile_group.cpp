// The form, then its tiles, then their cost.
#include "passes/tiling/tile_group.h"

#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_as_sums.h"

#include <utility>

namespace tilewright::passes {

namespace {

bool adds_atomically(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}

// Tiles follow what the kernel writes.
LoopNest with_wide_sums(const ir::Graph& graph, LoopNest nest) {
  for (ProgramOutput& o : nest.outputs)
    if (accumulates_wide(graph, o)) o.node = -1;
  return nest;
}

LoopNest form_of(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  return nest.is_empty() ? nest : best_form(graph, nest, target);
}

}  // namespace

bool accumulates_wide(const ir::Graph& graph, const ProgramOutput& output) {
  return output.accumulate && output.node >= 0 && !adds_atomically(graph.type(output.node).dtype);
}

TiledGroup tile_group(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  LoopNest form = form_of(graph, nest, target);
  const TileShape tiles = choose_tiles(graph, with_wide_sums(graph, form), target);
  const GroupCost cost = group_cost(graph, {nest, form, tiles}, target);
  return {.nest = std::move(form), .tiles = tiles, .cost = cost};
}

std::vector<TiledGroup> tile_group_by_all(const ir::Graph& graph, const LoopNest& nest,
                                          const tile::Target& target) {
  const LoopNest form = form_of(graph, nest, target);
  std::vector<TiledGroup> out;
  for (const TileShape& tiles : rank_tiles(graph, with_wide_sums(graph, form), target))
    out.push_back({form, tiles, group_cost(graph, {nest, form, tiles}, target)});
  return out;
}

}  // namespace tilewright::passes
