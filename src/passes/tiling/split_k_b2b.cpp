// A back-to-back matmul may be shared where it is one pass, which stores nothing of what the loop walks.
#include "passes/tiling/split_k_b2b.h"

#include "passes/masks/loop_range.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/online.h"
#include "passes/tiling/dot_shapes.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

bool can_share(const ir::Graph& graph, const LoopNest& nest) {
  const bool dots = nest.has_dots();
  if (!dots || nest.levels() < 2 || nest.reduced_variables().size() != 1) return false;
  const auto reduced = [&](const ProgramOutput& o) {
    return nest.is_stored_along_reduced(o) || o.accumulate;
  };
  if (std::any_of(nest.outputs.begin(), nest.outputs.end(), reduced)) return false;
  const std::vector<ReductionPass> passes = reduction_passes(graph, nest);
  return passes.size() == 1 && std::none_of(passes[0].exprs.begin(), passes[0].exprs.end(), [&](int s) {
           return finds_place(nest.exprs[static_cast<std::size_t>(s)].monoid);
         });
}

// All of a back-to-back matmul's work on all of the machine.
double busy_seconds(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  const std::vector<std::vector<bool>> depends = dependence(nest);
  const double flops_per_s = dot_rate(nest, target).flops_per_s;
  double seconds = 0, bytes = 0;
  for (std::size_t s = 0; s < nest.exprs.size(); ++s) {
    const Expr& m = nest.exprs[s];
    double points = 1, depth = 1;
    for (std::size_t v = 0; v < nest.extents.size(); ++v) {
      const auto extent = static_cast<double>(nest.extents[v]);
      if (depends[s][v]) points *= extent;
      if (m.inner ? m.offset.depends_on(static_cast<int>(v)) : nest.reduced[v]) depth *= extent;
    }
    if (m.kind == Expr::Kind::dot) seconds += 2 * points * depth / flops_per_s;
    if (m.kind == Expr::Kind::op) seconds += points * graph.node(m.node).op->flops / target.flops_per_s;
    if (m.kind == Expr::Kind::load) bytes += points * static_cast<double>(size_bytes(m.dtype));
  }
  return std::max(seconds, bytes / target.memory_bytes_per_s);
}

// The last wave of programs leaves units idle: with this many it matters little.
constexpr Index kMostWaves = 4;

}  // namespace

TileShape split_k_b2b(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target,
                      TileShape shape) {
  if (target.any_size || shape.split_k > 1 || !can_share(graph, nest)) return shape;
  const Index programs = program_count(nest, shape), units = target.units;
  const LoopSpace space(nest, shape);
  const Index block = space.block(space.walked);
  const Index blocks = ceil_div(nest.extents[static_cast<std::size_t>(space.walked)], block);
  if (programs == 0 || programs >= kMostWaves * units || blocks < 2) return shape;
  double partial_bytes = 0;
  for (const SharedPart& part : shared_parts(nest)) {
    double elements = 1;
    for (int v : partial_variables(nest, shape, part.expr))
      elements *= static_cast<double>(nest.extents[static_cast<std::size_t>(v)]);
    partial_bytes += elements * static_cast<double>(size_bytes(part.dtype));
  }
  const double one_unit = busy_seconds(graph, nest, target) * static_cast<double>(units);
  const auto walk_seconds = [&](Index split_k) {
    const Index all = programs * split_k;
    return one_unit * static_cast<double>(ceil_div(all, units)) / static_cast<double>(all);
  };
  double best = target.alone_share * walk_seconds(1);
  for (Index length = 1; length < blocks; ++length) {
    const Index split_k = ceil_div(blocks, length);
    if (split_k * programs > kMostWaves * units) continue;
    const double seconds = walk_seconds(split_k) + target.launch_s +
                           2 * partial_bytes * static_cast<double>(split_k) / target.cache_bytes_per_s;
    if (seconds >= best) continue;
    best = seconds;
    shape.split_k = split_k;
    shape.split_k_length = length * block;
  }
  return shape;
}

}  // namespace tilewright::passes
