// The form, then its tiles, then their cost.
#include "passes/tiling/tile_group.h"

#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_as_sums.h"

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

// An axis of length 0 is reduced to the monoid's identity: no kernel can walk it.
bool reduces_nothing(const GroupProgram& program) {
  const std::vector<int> reduced = program.reduced_variables();
  return std::any_of(reduced.begin(), reduced.end(),
                     [&](int v) { return program.extents[static_cast<std::size_t>(v)] == 0; });
}

GroupProgram without_empty_reductions(GroupProgram program) {
  for (Sym& s : program.syms) {
    if (s.kind != Sym::Kind::reduce && s.kind != Sym::Kind::dot) continue;
    s.kind = Sym::Kind::constant;
    s.inner = s.adds_up = false;
    s.operands.clear();
    s.number = identity(s.monoid, s.dtype);
  }
  GroupProgram kept = program;
  kept.extents.clear();
  kept.reduced.clear();
  kept.inner.clear();
  std::map<int, int> renamed;
  for (int v : program.parallel_variables()) {
    renamed[v] = static_cast<int>(kept.extents.size());
    kept.extents.push_back(program.extents[static_cast<std::size_t>(v)]);
    kept.reduced.push_back(false);
    kept.inner.push_back(false);
  }
  auto by = [&](int v) { return renamed.count(v) ? IndexExpr::variable(renamed.at(v)) : IndexExpr(0); };
  for (Sym& s : kept.syms) s.offset = substitute(s.offset, by, kept.extents);
  for (ProgramOutput& o : kept.outputs) o.offset = substitute(o.offset, by, kept.extents);
  return kept;
}

bool adds_atomically(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}

// Tiles follow what the kernel writes.
GroupProgram with_wide_sums(const ir::Graph& graph, GroupProgram program) {
  for (ProgramOutput& o : program.outputs)
    if (adds_up_wide(graph, o)) o.node = -1;
  return program;
}

}  // namespace

bool is_empty(const GroupProgram& program) {
  return std::find(program.extents.begin(), program.extents.end(), 0) != program.extents.end();
}

bool adds_up_wide(const ir::Graph& graph, const ProgramOutput& output) {
  return output.accumulate && output.node >= 0 && !adds_atomically(graph.type(output.node).dtype);
}

TiledGroup tile_group(const ir::Graph& graph, GroupProgram program, const tile::Target& target) {
  if (reduces_nothing(program)) program = without_empty_reductions(std::move(program));
  GroupProgram form = is_empty(program) ? program : best_form(graph, program, target);
  const TileShape tiles = choose_tiles(graph, with_wide_sums(graph, form), target);
  const GroupCost cost = group_cost(graph, {program, form, tiles}, target);
  return {.program = std::move(form), .tiles = tiles, .cost = cost};
}

}  // namespace tilewright::passes
