// Groups to kernels, shared reductions to two of them.
#include "passes/emit/lower.h"

#include "passes/emit/emit_block_bounds.h"
#include "passes/masks/block_bounds.h"
#include "passes/masks/split_loops.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/loop_variables.h"
#include "passes/nest/statistics.h"
#include "passes/nest/tile_shape.h"
#include "passes/tiling/chain_tiles.h"
#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/statistic_parts.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

bool is_reduction(const GroupProgram& program, int s) {
  return program.syms[static_cast<std::size_t>(s)].kind == Sym::Kind::reduce || program.is_outer_dot(s);
}

// The second kernel of a shared reduction: the same program with every reduction's operand read from the
// partials, over the parallel variables and one more, the split.
GroupProgram merge_program(const GroupProgram& program, Index splits, const std::vector<int>& reductions) {
  GroupProgram merged;
  std::map<int, int> renamed;  // parallel variable → new variable
  Index size = 1;
  for (int v : program.parallel_variables()) {
    renamed[v] = static_cast<int>(merged.extents.size());
    merged.extents.push_back(program.extents[static_cast<std::size_t>(v)]);
    merged.reduced.push_back(false);
    merged.inner.push_back(false);
    size *= merged.extents.back();
  }
  IndexExpr partial = 0;
  for (std::size_t v = 0; v < merged.extents.size(); ++v)
    partial = partial * merged.extents[v] + IndexExpr::variable(static_cast<int>(v));
  const int split = static_cast<int>(merged.extents.size());
  partial = partial + IndexExpr::variable(split) * size;
  merged.extents.push_back(splits);
  merged.reduced.push_back(true);
  merged.inner.push_back(false);

  auto by = [&](int v) { return IndexExpr::variable(renamed.at(v)); };
  std::map<int, int> syms;
  for (std::size_t s = 0; s < program.syms.size(); ++s) {
    Sym sym = program.syms[s];
    if (sym.reduced) continue;  // lives in the first kernel only
    if (is_reduction(program, static_cast<int>(s))) {
      const auto position =
          std::find(reductions.begin(), reductions.end(), static_cast<int>(s)) - reductions.begin();
      Sym load{.kind = Sym::Kind::load,
               .node = -1 - static_cast<int>(position),
               .offset = partial,
               .dtype = sym.dtype};
      load.reduced = true;
      merged.syms.push_back(load);
      sym.operands = {static_cast<int>(merged.syms.size()) - 1};
      sym.kind = Sym::Kind::reduce;  // of a dot: the sum of its parts
    } else {
      for (int& o : sym.operands) o = syms.at(o);
      for (auto& [o, stride] : sym.dynamic) o = syms.at(o);
      if (sym.mask >= 0) sym.mask = syms.at(sym.mask);
      sym.offset = substitute(sym.offset, by, merged.extents);
    }
    merged.syms.push_back(sym);
    syms[static_cast<int>(s)] = static_cast<int>(merged.syms.size()) - 1;
  }
  for (ProgramOutput o : program.outputs) {
    o.sym = syms.at(o.sym);
    if (o.mask >= 0) o.mask = syms.at(o.mask);
    o.offset = substitute(o.offset, by, merged.extents);
    merged.outputs.push_back(o);
  }
  return merged;
}

// Types without an atomic addition are accumulated in a wider temporary and narrowed by a second kernel.
void widen_accumulation(const ir::Graph& graph, GroupProgram& program, const tile::Target& target,
                        const std::string& name, Lowered& out) {
  for (ProgramOutput& o : program.outputs) {
    if (!o.accumulate) continue;
    if (!adds_up_wide(graph, o)) {
      out.zeroed.push_back(o.node);
      continue;
    }
    const ir::Type& type = graph.type(o.node);
    const int temporary = static_cast<int>(out.temporaries.size());
    const DType wide = is_float(type.dtype) ? DType::f32 : DType::i32;
    out.temporaries.push_back({wide, type.shape.size()});
    out.zeroed_temporaries.push_back(temporary);
    GroupProgram narrow;
    narrow.extents = {type.shape.size()};
    narrow.reduced = {false};
    narrow.inner = {false};
    narrow.syms = {
        {.kind = Sym::Kind::load, .node = -1 - temporary, .offset = IndexExpr::variable(0), .dtype = wide}};
    narrow.outputs = {{o.node, 0, IndexExpr::variable(0), {}, -1, false}};
    out.kernels.push_back(
        emit_tiles(graph, narrow, choose_tiles(graph, narrow, target), name + "_narrow", out.temporaries));
    o.node = -1 - temporary;
  }
}

// Chains of dots on a matrix unit wait for what stands between these: masks are left out where they can be.
EmittedKernel emit(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target,
                   const TileShape& shape, const std::string& name,
                   const std::vector<Temporary>& temporaries) {
  EmittedKernel out = emit_tiles(graph, program, shape, name, temporaries);
  if (shape.leaves_masks) out.kernel = split_masked_loops(out.kernel, out.known_blocks);
  const std::string_view why_not = program.is_chain() ? why_not_on_matrix_unit(program, target) : "";
  if (!why_not.empty() && chain_unit(target) != nullptr)
    out.note += fmt::format("{}on vector units: {}", out.note.empty() ? "" : "; ", why_not);
  return out;
}

// Another tile's statistics are finished by the same kernel.
bool leaves_as_many_parts(const GroupProgram& program, const TileShape& a, const TileShape& b) {
  const std::vector<int> all = statistics_of(program);
  return std::all_of(all.begin(), all.end(),
                     [&](int s) { return statistic_parts(program, a, s) == statistic_parts(program, b, s); });
}

// Where the parts of statistics stand between the kernels.
void place_statistics(const GroupProgram& program, TileShape& shape, Lowered& out) {
  const std::vector<bool> held = held_variables(program);
  for (std::size_t v = 0; v < held.size(); ++v) {
    const int variable = static_cast<int>(v);
    const Index block = variable == shape.row ? shape.rows : variable == shape.column ? shape.columns : 1;
    TW_CHECK(!held[v] || block >= program.extents[v], "a tile does not hold what is needed as a whole");
  }
  shape.statistics = static_cast<int>(out.temporaries.size());
  for (int s : statistics_in_parts(program, shape))
    out.temporaries.push_back(
        {program.syms[static_cast<std::size_t>(s)].dtype, elements_of_parts(program, shape, s)});
}

// For explain().
void note_statistics(const GroupProgram& program, const TileShape& shape, EmittedKernel& kernel) {
  std::string text;
  for (int s : statistics_of(program)) {
    const Index parts = statistic_parts(program, shape, s);
    text += fmt::format("{}{}{}", text.empty() ? "its tiles are reduced as they are stored: " : ", ",
                        tile::name(program.syms[static_cast<std::size_t>(s)].monoid),
                        parts > 1 ? fmt::format(" in {} parts", parts) : "");
  }
  if (!text.empty()) kernel.note += (kernel.note.empty() ? "" : "; ") + text;
}

void finish_statistics(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target,
                       const TileShape& shape, const std::string& name, Lowered& out) {
  for (GroupProgram finish : finishing_programs(program, shape)) {
    merge_variables(finish);
    TileShape tiles = choose_tiles(graph, finish, target);
    tiles.splits = 1;
    out.kernels.push_back(emit_tiles(graph, finish, tiles, name + "_statistics", out.temporaries));
    out.kernels.back().note = "reduces the parts that the product's tiles left";
  }
}

// The kernel with other tiles, and the depth shared among as many programs.
std::vector<tile::Kernel> other_tiles(const ir::Graph& graph, const GroupProgram& program,
                                      const tile::Target& target, const TileShape& shape,
                                      const Lowered& lowered) {
  std::vector<tile::Kernel> out;
  const EmittedKernel& chosen = lowered.kernels.front();
  std::vector<TileShape> shapes = rank_dot_shapes(program, target);
  for (auto s = shapes.begin() + 1; s != shapes.end(); ++s) {
    if (shape.split_length % s->depth != 0 || !leaves_as_many_parts(program, shape, *s)) continue;
    s->statistics = shape.statistics;
    s->splits = shape.splits, s->split_length = shape.split_length;
    EmittedKernel other = emit(graph, program, target, *s, chosen.kernel.name, lowered.temporaries);
    // Shapes that differ in the number of parts alone are one here.
    const bool known =
        other.kernel == chosen.kernel || std::find(out.begin(), out.end(), other.kernel) != out.end();
    if (other.views == chosen.views && !known) out.push_back(std::move(other.kernel));
  }
  return out;
}

// Where loaded vectors decide which blocks the shape's loop walks: the kernel that finds them.
std::vector<EmittedKernel> find_blocks(const ir::Graph& graph, const GroupProgram& program, TileShape& shape,
                                       const std::string& name, Lowered& out) {
  const std::optional<BlockBounds> bounds = find_block_bounds(graph, program, shape);
  if (!bounds) return {};
  shape.block_bounds = static_cast<int>(out.temporaries.size());
  out.temporaries.push_back({DType::i64, bounds_count(program, *bounds, shape)});
  return {emit_block_bounds(graph, program, *bounds, shape, name + "_blocks", out.temporaries)};
}

}  // namespace

Lowered lower(const ir::Graph& graph, const TiledGroup& group, const tile::Target& target,
              const LowerOptions& options) {
  Lowered out;
  const std::string& name = options.name;
  if (is_empty(group.program)) {  // nothing is added to the zeros
    for (const ProgramOutput& o : group.program.outputs) out.zeroed.push_back(o.node);
    return out;
  }
  GroupProgram program = group.program;
  TileShape shape = group.tiles;
  widen_accumulation(graph, program, target, name, out);
  if (shape.splits <= 1) {
    std::vector<EmittedKernel> kernels = find_blocks(graph, program, shape, name, out);
    place_statistics(program, shape, out);
    kernels.push_back(emit(graph, program, target, shape, name, out.temporaries));
    out.kernels.insert(out.kernels.begin(), std::make_move_iterator(kernels.begin()),
                       std::make_move_iterator(kernels.end()));
    if (options.variants && out.kernels.size() == 1 && shape.depth_variable >= 0)
      out.variants = other_tiles(graph, program, target, shape, out);
    note_statistics(program, shape, out.kernels.back());
    finish_statistics(graph, program, target, shape, name, out);
    return out;
  }
  const std::vector<int> reductions = shared_reductions(program);
  for (int r : reductions) {
    Index points = shape.splits;
    for (int v : partial_variables(program, shape, r)) points *= program.extents[static_cast<std::size_t>(v)];
    out.temporaries.push_back({program.syms[static_cast<std::size_t>(r)].dtype, points});
  }
  out.kernels = find_blocks(graph, program, shape, name, out);
  out.kernels.push_back(emit(graph, program, target, shape, name + "_partial", out.temporaries));
  if (options.variants && out.kernels.size() == 1 && shape.depth_variable >= 0)
    out.variants = other_tiles(graph, program, target, shape, out);
  if (program.levels() > 1) {  // parts are relative to one another
    TileShape merge = shape;
    merge.merges = true;
    out.kernels.push_back(emit_tiles(graph, program, merge, name, out.temporaries));
    return out;
  }
  GroupProgram merged = merge_program(program, shape.splits, reductions);
  merge_variables(merged);
  TileShape merge_shape = choose_tiles(graph, merged, target);
  merge_shape.splits = 1;
  out.kernels.push_back(emit_tiles(graph, merged, merge_shape, name, out.temporaries));
  return out;
}

void rename_nodes(Lowered& lowered, const std::vector<ir::NodeId>& from, const std::vector<ir::NodeId>& to) {
  std::map<ir::NodeId, ir::NodeId> names;
  for (std::size_t i = 0; i < from.size(); ++i) names[from[i]] = to[i];
  for (ir::NodeId& node : lowered.zeroed) node = names.at(node);
  for (EmittedKernel& kernel : lowered.kernels)
    for (BufferSource& view : kernel.views)
      if (view.node >= 0) view.node = names.at(view.node);
}

}  // namespace tilewright::passes
