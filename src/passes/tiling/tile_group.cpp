// A group becomes a plan in three steps: the form of its loop nest, then tiles, then their cost.
#include "passes/tiling/tile_group.h"

#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_as_sums.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tilewright::passes {

namespace {

bool adds_atomically(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}

// Tiles follow what the kernel writes; nothing where that is what the nest says.
std::optional<LoopNest> with_wide_sums(const ir::Graph& graph, const LoopNest& nest) {
  const auto is_wide = [&](const ProgramOutput& o) { return accumulates_wide(graph, o); };
  if (std::none_of(nest.outputs.begin(), nest.outputs.end(), is_wide)) return std::nullopt;
  LoopNest out = nest;
  for (ProgramOutput& o : out.outputs)
    if (is_wide(o)) o.node = -1;
  return out;
}

std::optional<LoopNest> form_of(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  return nest.is_empty() ? std::nullopt : other_form(graph, nest, target);
}

// What is otherwise, where something is.
const LoopNest& or_else(const std::optional<LoopNest>& other, const LoopNest& nest) {
  return other ? *other : nest;
}

}  // namespace

bool accumulates_wide(const ir::Graph& graph, const ProgramOutput& output) {
  return output.accumulate && output.node >= 0 && !adds_atomically(graph.type(output.node).dtype);
}

TiledGroup tile_group(const ir::Graph& graph, LoopNest nest, const tile::Target& target) {
  std::optional<LoopNest> other = form_of(graph, nest, target);
  const LoopNest& form = or_else(other, nest);
  const TileShape tiles = choose_tiles(graph, or_else(with_wide_sums(graph, form), form), target);
  const GroupCost cost = group_cost(graph, {nest, form, tiles}, target);
  return {.nest = std::move(other ? *other : nest), .tiles = tiles, .cost = cost};
}

std::vector<TiledGroup> tile_group_by_all(const ir::Graph& graph, const LoopNest& nest,
                                          const tile::Target& target) {
  const std::optional<LoopNest> other = form_of(graph, nest, target);
  const LoopNest& form = or_else(other, nest);
  std::vector<TiledGroup> out;
  for (const TileShape& tiles : rank_tiles(graph, or_else(with_wide_sums(graph, form), form), target))
    out.push_back({form, tiles, group_cost(graph, {nest, form, tiles}, target)});
  return out;
}

}  // namespace tilewright::passes
