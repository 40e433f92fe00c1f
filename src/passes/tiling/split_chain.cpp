// A chain may be shared where it is one pass, which stores nothing of what the loop walks.
#include "passes/tiling/split_chain.h"

#include "passes/masks/loop_range.h"
#include "passes/nest/dot_axes.h"
#include "passes/nest/online.h"
#include "passes/tiling/dot_shapes.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

bool can_share(const ir::Graph& graph, const GroupProgram& program) {
  const bool dots = program.has_dots();
  if (!dots || program.levels() < 2 || program.reduced_variables().size() != 1) return false;
  const auto reduced = [&](const ProgramOutput& o) {
    return program.syms[static_cast<std::size_t>(o.sym)].reduced || o.accumulate;
  };
  if (std::any_of(program.outputs.begin(), program.outputs.end(), reduced)) return false;
  const std::vector<ReductionPass> passes = reduction_passes(graph, program);
  return passes.size() == 1 && std::none_of(passes[0].syms.begin(), passes[0].syms.end(), [&](int s) {
           const tile::Monoid m = program.syms[static_cast<std::size_t>(s)].monoid;
           return m == tile::Monoid::argmax || m == tile::Monoid::argmin;
         });
}

// All of a chain's work on all of the machine.
double busy_seconds(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target) {
  const std::vector<std::vector<bool>> depends = dependence(program);
  const double flops_per_s = dot_rate(program, target).flops_per_s;
  double seconds = 0, bytes = 0;
  for (std::size_t s = 0; s < program.syms.size(); ++s) {
    const Sym& m = program.syms[s];
    double points = 1, depth = 1;
    for (std::size_t v = 0; v < program.extents.size(); ++v) {
      const auto extent = static_cast<double>(program.extents[v]);
      if (depends[s][v]) points *= extent;
      if (m.inner ? m.offset.depends_on(static_cast<int>(v)) : program.reduced[v]) depth *= extent;
    }
    if (m.kind == Sym::Kind::dot) seconds += 2 * points * depth / flops_per_s;
    if (m.kind == Sym::Kind::op) seconds += points * graph.node(m.node).op->flops / target.flops_per_s;
    if (m.kind == Sym::Kind::load) bytes += points * static_cast<double>(size_bytes(m.dtype));
  }
  return std::max(seconds, bytes / target.memory_bytes_per_s);
}

// The last wave of programs leaves units idle: with this many it matters little.
constexpr Index kMostWaves = 4;

}  // namespace

TileShape split_chain(const ir::Graph& graph, const GroupProgram& program, const tile::Target& target,
                      TileShape shape) {
  if (target.any_size || shape.splits > 1 || !can_share(graph, program)) return shape;
  const Index programs = program_count(program, shape), units = target.units;
  const LoopSpace space(program, shape);
  const Index block = space.block(space.walked);
  const Index blocks = ceil_div(program.extents[static_cast<std::size_t>(space.walked)], block);
  if (programs == 0 || programs >= kMostWaves * units || blocks < 2) return shape;
  double partial_bytes = 0;
  for (int s : shared_reductions(program)) {
    double elements = 1;
    for (int v : partial_variables(program, shape, s))
      elements *= static_cast<double>(program.extents[static_cast<std::size_t>(v)]);
    partial_bytes +=
        elements * static_cast<double>(size_bytes(program.syms[static_cast<std::size_t>(s)].dtype));
  }
  const double one_unit = busy_seconds(graph, program, target) * static_cast<double>(units);
  const auto walk_seconds = [&](Index splits) {
    const Index all = programs * splits;
    return one_unit * static_cast<double>(ceil_div(all, units)) / static_cast<double>(all);
  };
  double best = target.alone_share * walk_seconds(1);
  for (Index length = 1; length < blocks; ++length) {
    const Index splits = ceil_div(blocks, length);
    if (splits * programs > kMostWaves * units) continue;
    const double seconds = walk_seconds(splits) + target.launch_s +
                           2 * partial_bytes * static_cast<double>(splits) / target.cache_bytes_per_s;
    if (seconds >= best) continue;
    best = seconds;
    shape.splits = splits;
    shape.split_length = length * block;
  }
  return shape;
}

}  // namespace tilewright::passes
