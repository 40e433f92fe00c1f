// The form, then its tiles, then their cost.
#include "passes/tiling/tile_group.h"

#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_as_sums.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

// An axis of length 0 is reduced to the monoid's identity: no kernel can walk it.
bool reduces_nothing(const LoopNest& nest) {
  const std::vector<int> reduced = nest.reduced_variables();
  return std::any_of(reduced.begin(), reduced.end(),
                     [&](int v) { return nest.extents[static_cast<std::size_t>(v)] == 0; });
}

LoopNest without_empty_reductions(LoopNest nest) {
  for (Expr& s : nest.exprs) {
    if (s.kind != Expr::Kind::reduce && s.kind != Expr::Kind::dot) continue;
    s.kind = Expr::Kind::constant;
    s.inner = s.scaled_accumulation = false;
    s.operands.clear();
    s.number = identity(s.monoid, s.dtype);
  }
  LoopNest kept = nest;
  kept.extents.clear();
  kept.reduced.clear();
  kept.inner.clear();
  std::map<int, int> renamed;
  for (int v : nest.parallel_variables()) {
    renamed[v] = static_cast<int>(kept.extents.size());
    kept.extents.push_back(nest.extents[static_cast<std::size_t>(v)]);
    kept.reduced.push_back(false);
    kept.inner.push_back(false);
  }
  auto by = [&](int v) { return renamed.count(v) ? IndexExpr::variable(renamed.at(v)) : IndexExpr(0); };
  for (Expr& s : kept.exprs) s.offset = substitute(s.offset, by, kept.extents);
  for (ProgramOutput& o : kept.outputs) o.offset = substitute(o.offset, by, kept.extents);
  return kept;
}

bool adds_atomically(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}

// Tiles follow what the kernel writes.
LoopNest with_wide_sums(const ir::Graph& graph, LoopNest nest) {
  for (ProgramOutput& o : nest.outputs)
    if (accumulates_wide(graph, o)) o.node = -1;
  return nest;
}

}  // namespace

bool accumulates_wide(const ir::Graph& graph, const ProgramOutput& output) {
  return output.accumulate && output.node >= 0 && !adds_atomically(graph.type(output.node).dtype);
}

TiledGroup tile_group(const ir::Graph& graph, LoopNest nest, const tile::Target& target) {
  if (reduces_nothing(nest)) nest = without_empty_reductions(std::move(nest));
  LoopNest form = nest.is_empty() ? nest : best_form(graph, nest, target);
  const TileShape tiles = choose_tiles(graph, with_wide_sums(graph, form), target);
  const GroupCost cost = group_cost(graph, {nest, form, tiles}, target);
  return {.nest = std::move(form), .tiles = tiles, .cost = cost};
}

}  // namespace tilewright::passes
