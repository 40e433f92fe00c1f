// Groups to kernels, shared reductions to two of them.
#include "passes/emit/lower.h"

#include "passes/emit/emit_block_bounds.h"
#include "passes/masks/block_bounds.h"
#include "passes/masks/loop_peeling.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/epilogue_reductions.h"
#include "passes/nest/loop_variables.h"
#include "passes/nest/tile_shape.h"
#include "passes/tiling/b2b_tiles.h"
#include "passes/tiling/choose_tiles.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/epilogue_parts.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

// What the outputs are made of, down to the parts: an operand of these may be the same in every round of what
// is shared, and walk the depth of a product inside it.
std::vector<bool> needed_behind(const LoopNest& nest, const std::vector<SharedPart>& parts) {
  std::vector<bool> needed(nest.exprs.size(), false);
  const auto need = [&](int s) {
    if (s >= 0) needed[static_cast<std::size_t>(s)] = true;
  };
  for (const ProgramOutput& o : nest.outputs) {
    need(o.expr), need(o.mask);
    for (const auto& [s, stride] : o.dynamic) need(s);
  }
  for (int s = static_cast<int>(nest.exprs.size()) - 1; s >= 0; --s) {
    const Expr& expr = nest.exprs[static_cast<std::size_t>(s)];
    const bool is_part =
        std::any_of(parts.begin(), parts.end(), [&](const SharedPart& p) { return p.expr == s; });
    if (!needed[static_cast<std::size_t>(s)] || is_part) continue;
    for (int o : expr.operands) need(o);
    for (const auto& [o, stride] : expr.dynamic) need(o);
    need(expr.mask);
  }
  return needed;
}

// The second kernel of a shared reduction: the same program with every reduction's operand read from the
// partials, over the parallel variables and one more, the split. The place of an extreme is the one that the
// first split with that extreme left.
LoopNest combine_nest(const LoopNest& nest, Index split_k, const std::vector<SharedPart>& parts) {
  LoopNest combined;
  std::map<int, int> renamed;  // parallel variable → new variable
  Index size = 1;
  for (int v : nest.parallel_variables()) {
    renamed[v] = static_cast<int>(combined.extents.size());
    combined.extents.push_back(nest.extents[static_cast<std::size_t>(v)]);
    combined.reduced.push_back(false);
    combined.inner.push_back(false);
    size *= combined.extents.back();
  }
  IndexExpr partial = 0;
  for (std::size_t v = 0; v < combined.extents.size(); ++v)
    partial = partial * combined.extents[v] + IndexExpr::variable(static_cast<int>(v));
  const int split = static_cast<int>(combined.extents.size());
  const IndexExpr of_first_split = partial;
  partial = partial + IndexExpr::variable(split) * size;
  combined.extents.push_back(split_k);
  combined.reduced.push_back(true);
  combined.inner.push_back(false);

  auto by = [&](int v) { return IndexExpr::variable(renamed.at(v)); };
  const std::vector<bool> needed = needed_behind(nest, parts);
  std::map<int, int> exprs;
  for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
    Expr expr = nest.exprs[s];
    if (expr.reduced || !needed[s]) continue;  // lives in the first kernel only
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const SharedPart& p) { return p.expr == static_cast<int>(s); });
    if (part != parts.end()) {
      const int temporary = static_cast<int>(part - parts.begin());
      const bool place = expr.kind == Expr::Kind::reduce && finds_place(expr.monoid);
      const int compared = temporary + (place ? 1 : 0);  // the extreme stands behind its place
      combined.exprs.push_back({.kind = Expr::Kind::load,
                                .node = -1 - compared,
                                .offset = partial,
                                .dtype = parts[static_cast<std::size_t>(compared)].dtype,
                                .reduced = true});
      expr.operands = {static_cast<int>(combined.exprs.size()) - 1};
      expr.kind = Expr::Kind::reduce;  // of a dot: the sum of its parts
      if (place) {
        combined.exprs.push_back(expr);
        const int first_split = static_cast<int>(combined.exprs.size()) - 1;
        expr = {.kind = Expr::Kind::load,
                .node = -1 - temporary,
                .offset = of_first_split,
                .dynamic = {{first_split, size}},
                .dtype = expr.dtype,
                .level = expr.level};
      }
    } else {
      rename(expr, [&](int o) { return exprs.at(o); });
      expr.offset = substitute(expr.offset, by, combined.extents);
    }
    combined.exprs.push_back(expr);
    exprs[static_cast<int>(s)] = static_cast<int>(combined.exprs.size()) - 1;
  }
  for (ProgramOutput o : nest.outputs) {
    o.expr = exprs.at(o.expr);
    if (o.mask >= 0) o.mask = exprs.at(o.mask);
    o.offset = substitute(o.offset, by, combined.extents);
    combined.outputs.push_back(o);
  }
  return combined;
}

// Types without an atomic addition are accumulated in a wider temporary and narrowed by a second kernel.
void widen_accumulation(const ir::Graph& graph, LoopNest& nest, const tile::Target& target,
                        const std::string& name, Lowered& out) {
  for (ProgramOutput& o : nest.outputs) {
    if (!o.accumulate) continue;
    if (!accumulates_wide(graph, o)) {
      out.zeroed.push_back(o.node);
      continue;
    }
    const ir::Type& type = graph.type(o.node);
    const int temporary = static_cast<int>(out.temporaries.size());
    const DType wide = is_float(type.dtype) ? DType::f32 : DType::i32;
    out.temporaries.push_back({wide, type.shape.size()});
    out.zeroed_temporaries.push_back(temporary);
    LoopNest narrow;
    narrow.extents = {type.shape.size()};
    narrow.reduced = {false};
    narrow.inner = {false};
    narrow.exprs = {
        {.kind = Expr::Kind::load, .node = -1 - temporary, .offset = IndexExpr::variable(0), .dtype = wide}};
    narrow.outputs = {{o.node, 0, IndexExpr::variable(0), {}, -1, false}};
    out.kernels.push_back(
        emit_tiles(graph, narrow, choose_tiles(graph, narrow, target), name + "_narrow", out.temporaries));
    o.node = -1 - temporary;
  }
}

// Back-to-back matmuls on a matrix unit wait for what stands between their dots: masks are left out where
// they can be.
EmittedKernel emit(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target,
                   const TileShape& shape, const std::string& name,
                   const std::vector<Temporary>& temporaries) {
  EmittedKernel out = emit_tiles(graph, nest, shape, name, temporaries);
  if (shape.leaves_masks) out.kernel = peel_masked_loops(out.kernel, out.known_blocks);
  const std::string_view why_not = nest.is_b2b() ? why_not_on_matrix_unit(nest, target) : "";
  if (!why_not.empty() && b2b_unit(target) != nullptr)
    out.note += fmt::format("{}on vector units: {}", out.note.empty() ? "" : "; ", why_not);
  return out;
}

// Whether tiles a and b leave as many parts of each epilogue reduction: one kernel then finishes either's.
bool leaves_as_many_parts(const LoopNest& nest, const TileShape& a, const TileShape& b) {
  const std::vector<int> all = epilogue_reductions_of(nest);
  return std::all_of(all.begin(), all.end(),
                     [&](int s) { return epilogue_parts(nest, a, s) == epilogue_parts(nest, b, s); });
}

// Adds the temporaries in which the parts of epilogue reductions stand between the kernels.
void place_epilogue_reductions(const LoopNest& nest, TileShape& shape, Lowered& out) {
  const std::vector<bool> held = held_variables(nest);
  for (std::size_t v = 0; v < held.size(); ++v) {
    const int variable = static_cast<int>(v);
    const Index block = variable == shape.row ? shape.rows : variable == shape.column ? shape.columns : 1;
    TW_CHECK(!held[v] || block >= nest.extents[v], "a tile does not hold what is needed as a whole");
  }
  shape.epilogue_reductions = static_cast<int>(out.temporaries.size());
  for (int s : epilogue_reductions_in_parts(nest, shape))
    out.temporaries.push_back(
        {nest.exprs[static_cast<std::size_t>(s)].dtype, elements_of_parts(nest, shape, s)});
}

// Notes a kernel's epilogue reductions for explain().
void note_epilogue_reductions(const LoopNest& nest, const TileShape& shape, EmittedKernel& kernel) {
  std::string text;
  for (int s : epilogue_reductions_of(nest)) {
    const Index parts = epilogue_parts(nest, shape, s);
    text += fmt::format("{}{}{}", text.empty() ? "its tiles are reduced as they are stored: " : ", ",
                        tile::name(nest.exprs[static_cast<std::size_t>(s)].monoid),
                        parts > 1 ? fmt::format(" in {} parts", parts) : "");
  }
  if (!text.empty()) kernel.note += (kernel.note.empty() ? "" : "; ") + text;
}

void finish_epilogue_reductions(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target,
                                const TileShape& shape, const std::string& name, Lowered& out) {
  for (LoopNest finish : finishing_programs(nest, shape)) {
    merge_variables(finish);
    TileShape tiles = choose_tiles(graph, finish, target);
    tiles.split_k = 1;
    out.kernels.push_back(emit_tiles(graph, finish, tiles, name + "_epilogue", out.temporaries));
    out.kernels.back().note = "reduces the parts that the product's tiles left";
  }
}

// The kernel with other tiles, and the depth shared among as many programs.
std::vector<tile::Kernel> other_tiles(const ir::Graph& graph, const LoopNest& nest,
                                      const tile::Target& target, const TileShape& shape,
                                      const Lowered& lowered) {
  std::vector<tile::Kernel> out;
  const EmittedKernel& chosen = lowered.kernels.front();
  for (TileShape s : rank_dot_shapes(nest, target)) {
    if (shape.split_k_length % s.depth != 0 || !leaves_as_many_parts(nest, shape, s)) continue;
    s.epilogue_reductions = shape.epilogue_reductions;
    s.split_k = shape.split_k, s.split_k_length = shape.split_k_length;
    EmittedKernel other = emit(graph, nest, target, s, chosen.kernel.name, lowered.temporaries);
    // Shapes that differ in the number of parts alone are one here.
    const bool known =
        other.kernel == chosen.kernel || std::find(out.begin(), out.end(), other.kernel) != out.end();
    if (other.views == chosen.views && !known) out.push_back(std::move(other.kernel));
  }
  return out;
}

// The kernel that finds the blocks which the shape's loop walks, if loaded vectors decide them.
std::vector<EmittedKernel> find_blocks(const ir::Graph& graph, const LoopNest& nest, TileShape& shape,
                                       const std::string& name, Lowered& out) {
  const std::optional<BlockBounds> bounds = find_block_bounds(graph, nest, shape);
  if (!bounds) return {};
  shape.block_bounds = static_cast<int>(out.temporaries.size());
  out.temporaries.push_back({DType::i64, bounds_count(nest, *bounds, shape)});
  return {emit_block_bounds(graph, nest, *bounds, shape, name + "_blocks", out.temporaries)};
}

}  // namespace

Lowered lower(const ir::Graph& graph, const TiledGroup& group, const tile::Target& target,
              const LowerOptions& options) {
  Lowered out;
  const std::string& name = options.name;
  for (const ProgramOutput& o : group.nest.outputs)
    if (o.keeps >= 0) out.copied.push_back({o.keeps, o.node});
  if (group.nest.is_empty()) {  // nothing is added to the zeros
    for (const ProgramOutput& o : group.nest.outputs)
      if (o.keeps < 0) out.zeroed.push_back(o.node);
    return out;
  }
  LoopNest nest = group.nest;
  TileShape shape = group.tiles;
  widen_accumulation(graph, nest, target, name, out);
  if (shape.split_k <= 1) {
    std::vector<EmittedKernel> kernels = find_blocks(graph, nest, shape, name, out);
    place_epilogue_reductions(nest, shape, out);
    kernels.push_back(emit(graph, nest, target, shape, name, out.temporaries));
    out.kernels.insert(out.kernels.begin(), std::make_move_iterator(kernels.begin()),
                       std::make_move_iterator(kernels.end()));
    if (options.variants && out.kernels.size() == 1 && shape.depth_variable >= 0)
      out.variants = other_tiles(graph, nest, target, shape, out);
    note_epilogue_reductions(nest, shape, out.kernels.back());
    finish_epilogue_reductions(graph, nest, target, shape, name, out);
    return out;
  }
  const std::vector<SharedPart> parts = shared_parts(nest);
  for (const SharedPart& part : parts) {
    Index points = shape.split_k;
    for (int v : partial_variables(nest, shape, part.expr))
      points *= nest.extents[static_cast<std::size_t>(v)];
    out.temporaries.push_back({part.dtype, points});
  }
  out.kernels = find_blocks(graph, nest, shape, name, out);
  out.kernels.push_back(emit(graph, nest, target, shape, name + "_partial", out.temporaries));
  if (options.variants && out.kernels.size() == 1 && shape.depth_variable >= 0)
    out.variants = other_tiles(graph, nest, target, shape, out);
  if (nest.levels() > 1) {  // parts are relative to one another
    TileShape merge = shape;
    merge.combines = true;
    out.kernels.push_back(emit_tiles(graph, nest, merge, name, out.temporaries));
    return out;
  }
  LoopNest combined = combine_nest(nest, shape.split_k, parts);
  merge_variables(combined);
  TileShape combine_shape = choose_tiles(graph, combined, target);
  combine_shape.split_k = 1;
  out.kernels.push_back(emit_tiles(graph, combined, combine_shape, name, out.temporaries));
  return out;
}

void rename_nodes(Lowered& lowered, const std::vector<ir::NodeId>& from, const std::vector<ir::NodeId>& to) {
  std::map<ir::NodeId, ir::NodeId> names;
  for (std::size_t i = 0; i < from.size(); ++i) names[from[i]] = to[i];
  for (ir::NodeId& node : lowered.zeroed) node = names.at(node);
  for (auto& [from, output] : lowered.copied) from = names.at(from), output = names.at(output);
  for (EmittedKernel& kernel : lowered.kernels)
    for (BufferSource& view : kernel.views)
      if (view.node >= 0) view.node = names.at(view.node);
}

}  // namespace tilewright::passes
