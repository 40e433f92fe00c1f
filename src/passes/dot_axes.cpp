#include "passes/dot_axes.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

}  // namespace

std::vector<std::vector<bool>> dependence(const GroupProgram& program) {
  std::vector<std::vector<bool>> all;
  for (const Sym& s : program.syms) {
    std::vector<bool> on(program.extents.size());
    const auto take = [&](int operand) {
      for (std::size_t v = 0; v < on.size(); ++v) on[v] = on[v] || all[place_of(operand)][v];
    };
    for (int o : s.operands) take(o);
    for (auto [o, stride] : s.dynamic) take(o);
    if (s.mask >= 0) take(s.mask);
    for (std::size_t v = 0; v < on.size(); ++v) {
      on[v] = on[v] || s.offset.depends_on(static_cast<int>(v));
      const bool gone = s.kind == Sym::Kind::dot ? (s.inner ? program.inner[v] : program.reduced[v])
                                                 : s.kind == Sym::Kind::reduce && program.reduced[v];
      if (gone) on[v] = false;
    }
    all.push_back(std::move(on));
  }
  return all;
}

DotAxes dot_axes(const GroupProgram& program) {
  int sym = program.dot();
  for (std::size_t s = 0; sym < 0 && s < program.syms.size(); ++s)
    if (program.syms[s].inner) sym = static_cast<int>(s);
  const Sym& dot = program.syms[place_of(sym)];
  const std::vector<std::vector<bool>> depends = dependence(program);
  const std::vector<bool>&a = depends[place_of(dot.operands[0])], &b = depends[place_of(dot.operands[1])];
  const auto longest = [&](const std::vector<bool>& of, const std::vector<bool>& not_of) {
    int best = -1;
    for (int v : program.parallel_variables())
      if (of[place_of(v)] && !not_of[place_of(v)] &&
          (best < 0 || program.extents[place_of(v)] >= program.extents[place_of(best)]))
        best = v;
    return best;
  };
  return {sym, longest(a, b), longest(b, a), program.reduced_variables().back()};
}

namespace {

// A chain of dots and reductions in one loop: blocks of the scores, rows × depth, stay on chip with what is
// carried. On the CPU 64 × 256 of f32 are 64 KiB, a part of L2; on a GPU 64 × 64 are a warpgroup's registers.
DotTiles stream_tiles(const DotProblem& p, const tile::Target& target) {
  const bool gpu = target.kind == tile::TargetKind::cuda;
  return {std::min<Index>(64, p.m), std::min<Index>(256, p.n), std::min<Index>(gpu ? 64 : 256, p.k)};
}

}  // namespace

std::vector<TileShape> rank_dot_shapes(const GroupProgram& program, const tile::Target& target) {
  const DotAxes axes = dot_axes(program);
  const auto extent = [&](int v) { return v < 0 ? Index{1} : program.extents[place_of(v)]; };
  DotProblem problem{.batch = 1, .m = extent(axes.m), .n = extent(axes.n), .k = extent(axes.k)};
  for (int v : program.parallel_variables())
    if (v != axes.m && v != axes.n) problem.batch *= extent(v);
  const bool stream = program.has_inner_dots() || program.levels() > 1;
  problem.dtype = program.syms[place_of(axes.dot)].meet;
  std::vector<TileShape> shapes;
  for (const DotTiles& tiles :
       stream ? std::vector{stream_tiles(problem, target)} : rank_dot_tiles(problem, target)) {
    if (program.dot() < 0)  // the reduced variable's blocks are the tile's columns
      shapes.push_back(
          {.row = axes.m, .column = axes.k, .rows = tiles.bm, .columns = tiles.bk, .looped = true});
    else
      shapes.push_back({.row = axes.m,
                        .column = axes.n,
                        .rows = tiles.bm,
                        .columns = tiles.bn,
                        .looped = true,
                        .depth_variable = axes.k,
                        .depth = tiles.bk});
  }
  return shapes;
}

TileShape choose_dot_shape(const GroupProgram& program, const tile::Target& target) {
  return rank_dot_shapes(program, target).front();
}

}  // namespace tilewright::passes
