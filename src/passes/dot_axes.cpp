#include "passes/dot_axes.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <map>

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

// Read by the copy engine: one step of 1 and others that are whole 16 bytes, as many as a tensor map has.
bool copy_engine_reads(const Sym& s) {
  constexpr Index kAligned = 16;
  constexpr int kLargestRank = 4;
  const Index bytes = static_cast<Index>(size_bytes(s.dtype));
  if (s.kind != Sym::Kind::load || !s.offset.is_affine() || !s.dynamic.empty() || s.mask >= 0 ||
      s.offset.constant() * bytes % kAligned != 0)
    return false;
  int ones = 0, others = 0;
  for (const IndexExpr::Term& t : s.offset.terms()) {
    const bool strides = t.factor > 0 && t.factor * bytes % kAligned == 0;
    if (t.factor != 1 && !strides) return false;
    ++(t.factor == 1 ? ones : others);
  }
  return ones == 1 && ones + others <= kLargestRank;
}

constexpr Index kPanel = 64;  // of a depth of 16 bits: the copy engine's rows of 128 bytes

// Two warpgroups of 64 rows, or three where the sums are narrow enough for their registers, unless these
// leave more units without work. On an H200 three were faster by an eighth
// (docs/notes/2026-11-21-dot-chains.md).
DotTiles tensor_stream_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr Index kRows = 64, kMostColumns = 256, kRegisterColumns = 128;
  constexpr double kThreeAtOnce = 1.13;
  const Index columns = std::min(round_up(p.n, kPanel), kMostColumns);
  if (p.m <= kRows) return {kRows, columns, columns > kRegisterColumns ? kPanel : 2 * kPanel};
  const auto time = [&](Index rows, double rate) {
    const Index waves = ceil_div(ceil_div(p.m, rows) * p.batch, std::max<Index>(target.units, 1));
    return static_cast<double>(waves * rows) / rate;
  };
  const bool three = columns <= kPanel && time(3 * kRows, kThreeAtOnce) < time(2 * kRows, 1);
  return {(three ? 3 : 2) * kRows, columns, columns > kRegisterColumns ? kPanel : 2 * kPanel};
}

Index depth_of(const GroupProgram& program, const Sym& inner_dot) {
  return program.extents[place_of(inner_dot.offset.single_variable())];
}

// A dot inside the loop whose depth is walked in blocks.
bool is_deep(const GroupProgram& program) {
  return std::any_of(program.syms.begin(), program.syms.end(),
                     [&](const Sym& s) { return s.inner && depth_of(program, s) > kMostInnerDepth; });
}

// Such a dot is a product with more to compute on its tiles: of 256 columns these no longer fit the
// registers.
constexpr DotTiles kDeepOnTensorCores = {128, 1, 192};

// Blocks of memory that a chain keeps in shared memory: those its loop walks twice, so that one is fetched
// while the other is multiplied, the others once. What two dots read of one buffer is one block.
Index chain_bytes(const GroupProgram& program, const DotAxes& axes, const DotTiles& tiles) {
  std::map<ir::NodeId, Index> blocks;
  for (const Sym& s : program.syms) {
    if (s.kind != Sym::Kind::dot) continue;
    const bool deep = s.inner && depth_of(program, s) > kMostInnerDepth;
    const Index inner = deep ? kPanel : s.inner ? round_up(depth_of(program, s), kPanel) : tiles.bk;
    for (int side : {0, 1}) {
      const Sym& o = program.syms[place_of(s.operands[place_of(side)])];
      if (o.kind != Sym::Kind::load) continue;
      const Index across = side == 0 ? tiles.bm : s.inner ? tiles.bk : tiles.bn;
      const Index stages = deep || o.offset.depends_on(axes.k) ? 2 : 1;
      Index& bytes = blocks[o.node];
      bytes = std::max(bytes, stages * across * inner * static_cast<Index>(size_bytes(o.dtype)));
    }
  }
  Index sum = 0;
  for (const auto& [node, bytes] : blocks) sum += bytes;
  return sum;
}

// A block of it: one of the block's two axes is contiguous.
bool is_copied(const GroupProgram& program, int operand, int row, int k) {
  const Sym& s = program.syms[place_of(operand)];
  return row >= 0 && copy_engine_reads(s) && (s.offset.factor(row) == 1 || s.offset.factor(k) == 1);
}

// One loop of one dot, whose sums a second kernel can add before the rest is computed of them.
bool can_split(const GroupProgram& program) {
  return program.dot() >= 0 && !program.has_inner_dots() && program.levels() == 1 &&
         program.reduced_variables().size() == 1 &&
         std::none_of(program.syms.begin(), program.syms.end(),
                      [](const Sym& s) { return s.kind == Sym::Kind::reduce; }) &&
         std::none_of(program.outputs.begin(), program.outputs.end(),
                      [&](const ProgramOutput& o) { return program.syms[place_of(o.sym)].reduced; });
}

DotProblem problem_of(const GroupProgram& program, const DotAxes& axes) {
  const auto extent = [&](int v) {
    return v < 0 ? Index{1} : std::max<Index>(program.extents[place_of(v)], 1);
  };
  DotProblem problem{.batch = 1, .m = extent(axes.m), .n = extent(axes.n), .k = extent(axes.k)};
  for (int v : program.parallel_variables())
    if (v != axes.m && v != axes.n) problem.batch *= extent(v);
  const Sym& dot = program.syms[place_of(axes.dot)];
  problem.dtype = dot.meet;
  problem.in_memory = std::all_of(dot.operands.begin(), dot.operands.end(),
                                  [&](int o) { return program.syms[place_of(o)].kind == Sym::Kind::load; });
  problem.copied = is_copied(program, dot.operands[0], axes.m, axes.k) &&
                   is_copied(program, dot.operands[1], axes.n, axes.k);
  const Sym& b = program.syms[place_of(dot.operands[1])];
  problem.b_by_rows = axes.n >= 0 && b.kind == Sym::Kind::load && b.offset.factor(axes.n) == 1;
  problem.by_k = problem.in_memory && std::all_of(dot.operands.begin(), dot.operands.end(), [&](int o) {
                   return program.syms[place_of(o)].offset.factor(axes.k) == 1;
                 });
  problem.splits = can_split(program);
  return problem;
}

}  // namespace

bool chains_on_tensor_cores(const GroupProgram& program, const tile::Target& target) {
  constexpr Index kFewest = 2;  // rows: what overhangs is zeros
  if (target.arch != "sm_90a") return false;
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || program.extents[place_of(axes.m)] < kFewest) return false;
  const DType meet = program.syms[place_of(axes.dot)].meet;
  if (meet != DType::bf16 && meet != DType::f16) return false;
  constexpr Index kSharedBytes = 224 << 10;  // of 227 KiB; barriers take the rest
  const DotTiles tiles =
      is_deep(program) ? kDeepOnTensorCores : tensor_stream_tiles(problem_of(program, axes), target);
  if (chain_bytes(program, axes, tiles) > kSharedBytes) return false;
  return std::all_of(program.syms.begin(), program.syms.end(), [&](const Sym& s) {
    if (s.kind != Sym::Kind::dot) return true;
    const Sym &a = program.syms[place_of(s.operands[0])], &b = program.syms[place_of(s.operands[1])];
    return s.meet == meet && copy_engine_reads(b) && (a.kind != Sym::Kind::load || copy_engine_reads(a));
  });
}

namespace {

// Sums of rows × walked that are reduced to statistics of the rows. On the CPU 256 × 256 of f32 are a quarter
// of L2, and a block of operand b is packed for as many rows.
DotTiles deep_tiles(const DotProblem& p, bool on_tensor_cores, const tile::Target& target) {
  if (on_tensor_cores) return kDeepOnTensorCores;
  const Index edge = target.kind == tile::TargetKind::cuda ? 64 : 256;
  return {std::min(edge, p.m), 1, std::min(edge, p.k)};
}

// Of a dot inside the loop, the depth that is on chip at once.
Index inner_depth(const GroupProgram& program, const tile::Target& target) {
  constexpr Index kDepthOfFma = 32;
  if (!is_deep(program) || target.kind != tile::TargetKind::cuda) return kMostInnerDepth;
  return chains_on_tensor_cores(program, target) ? kPanel : kDepthOfFma;
}

// A chain of dots and reductions in one loop: blocks of the scores, rows × depth, stay on chip with what is
// carried. On the CPU 64 × 256 of f32 are 64 KiB, a part of L2; on a GPU 64 × 64 are a warpgroup's registers,
// on tensor cores 64 × 128 for each of two.
DotTiles stream_tiles(const GroupProgram& program, const DotProblem& p, const tile::Target& target) {
  const bool gpu = target.kind == tile::TargetKind::cuda;
  if (is_deep(program)) return deep_tiles(p, chains_on_tensor_cores(program, target), target);
  if (chains_on_tensor_cores(program, target)) return tensor_stream_tiles(p, target);
  return {std::min<Index>(64, p.m), std::min<Index>(256, p.n), std::min<Index>(gpu ? 64 : 256, p.k)};
}

}  // namespace

bool dot_on_tensor_cores(const GroupProgram& program, const tile::Target& target) {
  return on_tensor_cores(problem_of(program, dot_axes(program)), target);
}

std::vector<TileShape> rank_dot_shapes(const GroupProgram& program, const tile::Target& target) {
  const DotAxes axes = dot_axes(program);
  const DotProblem problem = problem_of(program, axes);
  const bool stream = program.has_inner_dots() || program.levels() > 1;
  const Index unit = stream && chains_on_tensor_cores(program, target) ? kPanel : 1;
  std::vector<TileShape> shapes;
  for (const DotTiles& tiles :
       stream ? std::vector{stream_tiles(program, problem, target)} : rank_dot_tiles(problem, target)) {
    if (program.dot() < 0) {  // the reduced variable's blocks are the tile's columns
      shapes.push_back({.row = axes.m,
                        .column = axes.k,
                        .rows = tiles.bm,
                        .columns = tiles.bk,
                        .looped = true,
                        .inner_depth = inner_depth(program, target),
                        .inner_unit = unit});
      continue;
    }
    TileShape shape{.row = axes.m,
                    .column = axes.n,
                    .rows = tiles.bm,
                    .columns = tiles.bn,
                    .looped = true,
                    .depth_variable = axes.k,
                    .depth = tiles.bk,
                    .inner_unit = unit};
    if (tiles.splits > 1) {
      shape.split_length = round_up(ceil_div(problem.k, tiles.splits), tiles.bk);
      shape.splits = ceil_div(problem.k, shape.split_length);
    }
    shapes.push_back(shape);
  }
  return shapes;
}

TileShape choose_dot_shape(const GroupProgram& program, const tile::Target& target) {
  return rank_dot_shapes(program, target).front();
}

}  // namespace tilewright::passes
