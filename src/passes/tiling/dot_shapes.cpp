// The problem a program's dots pose, put to the models of tiles.
#include "passes/tiling/dot_shapes.h"

#include "passes/nest/dot_axes.h"
#include "passes/nest/pages.h"
#include "passes/nest/statistics.h"
#include "passes/tiling/chain_tiles.h"
#include "passes/tiling/kept_block.h"

#include <algorithm>
#include <optional>
#include <set>

namespace tilewright::passes {

namespace {

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

// Read by the copy engine: one step of 1 and others that are whole 16 bytes, as many as a tensor map has.
// A page's dimension is picked by a table, a group's matrix by its index.
bool copy_engine_reads(const GroupProgram& program, const Sym& s) {
  constexpr Index kAligned = 16;
  constexpr int kLargestRank = 4;
  const Index bytes = static_cast<Index>(size_bytes(s.dtype));
  if (s.kind != Sym::Kind::load || s.offset.constant() * bytes % kAligned != 0) return false;
  const std::optional<Pages> pages = pages_of(program, s);
  const bool whole = s.dynamic.empty() && s.mask < 0, picked = !whole && picks_a_block(program, s);
  if (!pages && (!s.offset.is_affine() || (!whole && !picked))) return false;
  std::vector<Index> strides;
  for (const IndexExpr::Term& t : s.offset.terms()) strides.push_back(t.factor);
  if (pages || (picked && moved_along(program, s) < 0)) strides.push_back(s.dynamic[0].second);
  const auto ones = std::count(strides.begin(), strides.end(), 1);
  return ones == 1 && static_cast<int>(strides.size()) <= kLargestRank &&
         std::all_of(strides.begin(), strides.end(), [&](Index stride) {
           return stride == 1 || (stride > 0 && stride * bytes % kAligned == 0);
         });
}

// A block of it: one of the block's two axes is contiguous.
bool is_copied(const GroupProgram& program, int operand, int row, int k) {
  const Sym& s = program.syms[place_of(operand)];
  return row >= 0 && copy_engine_reads(program, s) && (s.offset.factor(row) == 1 || s.offset.factor(k) == 1);
}

// One loop of one dot, whose sums a second kernel can add before the rest is computed of them.
bool can_split(const GroupProgram& program) {
  return program.dot() >= 0 && !program.is_chain() && program.reduced_variables().size() == 1 &&
         std::none_of(
             program.syms.begin(), program.syms.end(),
             [](const Sym& s) { return s.kind == Sym::Kind::reduce || s.kind == Sym::Kind::statistic; }) &&
         std::none_of(program.outputs.begin(), program.outputs.end(),
                      [&](const ProgramOutput& o) { return program.syms[place_of(o.sym)].reduced; });
}

// Pointwise ones that are computed of the result.
int ops_after_dots(const GroupProgram& program) {
  std::vector<bool> after(program.syms.size(), false);
  int ops = 0;
  for (std::size_t s = 0; s < after.size(); ++s) {
    const Sym& sym = program.syms[s];
    after[s] =
        program.is_outer_dot(static_cast<int>(s)) ||
        std::any_of(sym.operands.begin(), sym.operands.end(), [&](int o) { return after[place_of(o)]; });
    ops += after[s] && (sym.kind == Sym::Kind::op || sym.kind == Sym::Kind::statistic) ? 1 : 0;
  }
  return ops;
}

// The products of a chain stay exact: its schedules take 16 bits.
DotProblem problem_of(const GroupProgram& program, const DotAxes& axes, const tile::Target& target) {
  const auto extent = [&](int v) {
    return v < 0 ? Index{1} : std::max<Index>(program.extents[place_of(v)], 1);
  };
  DotProblem problem{.batch = 1, .m = extent(axes.m), .n = extent(axes.n), .k = extent(axes.k)};
  for (int v : program.parallel_variables())
    if (v != axes.m && v != axes.n) problem.batch *= extent(v);
  const Sym& dot = program.syms[place_of(axes.dot)];
  if (dot.inner) problem.inner_k = program.extents[place_of(dot.offset.single_variable())];
  problem.dtype = dot.meet[0];
  problem.in_memory = std::all_of(dot.operands.begin(), dot.operands.end(),
                                  [&](int o) { return program.syms[place_of(o)].kind == Sym::Kind::load; });
  problem.copied = is_copied(program, dot.operands[0], axes.m, axes.k) &&
                   is_copied(program, dot.operands[1], axes.n, axes.k);
  const Sym& b = program.syms[place_of(dot.operands[1])];
  problem.b_by_rows = axes.n >= 0 && b.kind == Sym::Kind::load && b.offset.factor(axes.n) == 1;
  const auto by_k = [&](int operand) {
    const Sym& s = program.syms[place_of(operand)];
    return s.kind == Sym::Kind::load && s.offset.factor(axes.k) == 1;
  };
  problem.b_by_k = by_k(dot.operands[1]);
  problem.by_k = problem.b_by_k && by_k(dot.operands[0]);
  problem.splits = can_split(program);
  const std::vector<bool> held = held_variables(program);
  problem.whole_m = axes.m >= 0 && held[place_of(axes.m)];
  problem.whole_n = axes.n >= 0 && held[place_of(axes.n)];
  problem.ops_after = ops_after_dots(program);
  problem.tf32 = target.tf32 && !program.is_chain();
  return problem;
}

// What operand a is computed from lies by its depth, as its registers hold it: turning it around would take
// the threads through shared memory.
bool computed_by_depth(const GroupProgram& program, const DotAxes& axes, const Sym& dot) {
  if (!dot.inner || block_of_operand(program, axes, dot.operands[0]) >= 0) return true;
  const int depth = dot.offset.single_variable();
  const std::vector<bool> parts = program.made_of({dot.operands[0]});
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Sym& m = program.syms[s];
    const bool block =
        parts[s] && m.kind == Sym::Kind::load && m.offset.depends_on(depth) && m.offset.depends_on(axes.m);
    if (block && m.offset.factor(depth) != 1) return false;
  }
  return true;
}

// Whether they take a dot of a chain: 16 bits either way round, on wgmma 8 bits by their depth; operand a may
// be computed, but for integers.
bool takes_dot(const GroupProgram& program, const DotAxes& axes, const Sym& dot, ChainUnit unit) {
  const int a_block = block_of_operand(program, axes, dot.operands[0]),
            b_block = block_of_operand(program, axes, dot.operands[1]);
  const bool a_loaded = a_block >= 0;
  const Sym &a = program.syms[place_of(a_loaded ? a_block : dot.operands[0])],
            &b = program.syms[place_of(b_block >= 0 ? b_block : dot.operands[1])];
  const bool integers = dot.meet == std::array{DType::i8, DType::i8};
  const bool of8 = (is_f8(dot.meet[0]) && is_f8(dot.meet[1])) || integers;
  const bool of16 = dot.meet[0] == dot.meet[1] && (dot.meet[0] == DType::bf16 || dot.meet[0] == DType::f16);
  if (!copy_engine_reads(program, b) || (a_loaded && !copy_engine_reads(program, a))) return false;
  if (of16 || !of8 || unit != ChainUnit::wgmma) return of16 && computed_by_depth(program, axes, dot);
  const int depth = dot.inner ? dot.offset.single_variable() : axes.k;
  // Blocks whose products are added up are whole.
  if (dot.adds_up && depth_of(program, dot) % kPanelBytes != 0) return false;
  return b.offset.factor(depth) == 1 && (a_loaded ? a.offset.factor(depth) == 1 : !integers && !dot.inner);
}

// Whether what is computed beside the dots reads a tile whose rows are the contiguous axis, as a transposed
// bias of scores is: threads hold rows, and would exchange it through shared memory, which the blocks of dots
// fill.
bool turns_tiles(const GroupProgram& program, const DotAxes& axes) {
  std::set<int> operands;
  for (const Sym& s : program.syms)
    if (s.kind == Sym::Kind::dot)
      for (int o : s.operands) operands.insert({o, block_of_operand(program, axes, o)});
  for (int i = 0; i < static_cast<int>(program.syms.size()); ++i) {
    const Sym& s = program.syms[place_of(i)];
    const bool block = s.kind == Sym::Kind::load && s.offset.is_affine() && s.dynamic.empty() && s.mask < 0;
    if (!block || operands.count(i) > 0 || s.offset.factor(axes.m) != 1) continue;
    // What adds up products walks blocks of k one by one: no tile's columns.
    const bool by_k = !program.adds_up_dots() && s.offset.depends_on(axes.k);
    if (by_k || (axes.n >= 0 && s.offset.depends_on(axes.n))) return true;
  }
  return false;
}

}  // namespace

std::string_view why_not_on_tensor_cores(const GroupProgram& program, const tile::Target& target) {
  constexpr Index kFewest = 2;  // rows: what overhangs is zeros
  if (chain_unit(target) == ChainUnit::none) return "the target has no tensor cores for chains of dots";
  const DotAxes axes = dot_axes(program);
  if (axes.m < 0 || program.extents[place_of(axes.m)] < kFewest) return "tensor cores want several rows";
  if (axes.n < 0 && (program.dot() >= 0 || program.adds_up_dots()))
    return "tensor cores want several columns";
  if (std::any_of(program.syms.begin(), program.syms.end(), [&](const Sym& s) {
        return s.kind == Sym::Kind::dot && !takes_dot(program, axes, s, chain_unit(target));
      }))
    return "tensor cores do not take the operands of a dot as they are";
  if (program.adds_up_dots() && chain_unit(target) != ChainUnit::wgmma)
    return "what is added up block by block runs on the tensor cores of sm_90a alone";
  if (turns_tiles(program, axes)) return "a tile beside the dots lies by rows, and would be turned around";
  return chain_tiles(program, axes, problem_of(program, axes, target), target)
             ? ""
             : "its tiles have no room in registers or shared memory";
}

namespace {

// Sums of rows × walked that are reduced to statistics of the rows. On the CPU 256 × 256 of f32 are a quarter
// of L2, and a block of operand b is packed for as many rows.
DotTiles deep_tiles(const DotProblem& p, const tile::Target& target) {
  const Index edge = target.kind == tile::TargetKind::cuda ? 64 : 256;
  return {std::min(edge, p.m), 1, std::min(edge, p.k)};
}

// Of a dot inside the loop, what its depth is filled up to: whole rows of the copy engine.
Index inner_unit(const GroupProgram& program, const tile::Target& target) {
  Index unit = 1;
  if (!program.is_chain() || !chains_on_tensor_cores(program, target)) return unit;
  for (const Sym& s : program.syms)
    if (s.inner) unit = std::max(unit, panel_of(s.meet[1]));
  return unit;
}

// Of a dot inside the loop, the depth that is on chip at once.
Index inner_depth(const GroupProgram& program, const tile::Target& target) {
  constexpr Index kDepthOfFma = 32;
  if (!is_deep(program) || target.kind != tile::TargetKind::cuda) return kMostInnerDepth;
  return chains_on_tensor_cores(program, target) ? kDeepBlock : kDepthOfFma;
}

// Rows of a chain's blocks on the CPU. Each block of operand b is packed for so many, which for 64 rows of
// depth 64 takes a tenth of the time (docs/notes/2026-11-22-cpu-rows.md): 128 where the loop is so
// long that what a causal mask leaves of them half empty matters less, where the scores and what is computed
// of them fit the part of L2 that is a program's own, and where every core still has several programs.
Index rows_on_cpu(const GroupProgram& program, const DotProblem& p, Index columns,
                  const tile::Target& target) {
  constexpr Index kRows = 64, kLongLoop = 2048, kProgramsACore = 4;
  const auto inner = std::count_if(program.syms.begin(), program.syms.end(),
                                   [](const Sym& s) { return s.kind == Sym::Kind::dot && s.inner; });
  const Index bytes = 2 * static_cast<Index>(inner) * 2 * kRows * columns * 4;
  const bool wide = !target.any_size && p.k >= kLongLoop && bytes <= target.row_bytes &&
                    p.batch * ceil_div(p.m, 2 * kRows) >= kProgramsACore * target.units;
  return wide ? 2 * kRows : kRows;
}

// A chain of dots and reductions in one loop: blocks of the scores, rows × depth, stay on chip with what is
// carried. On the CPU 64 × 256 of f32 are 64 KiB, a part of L2; on a GPU 64 × 64 are a warpgroup's registers,
// on tensor cores 64 × 128 for each of two.
DotTiles stream_tiles(const GroupProgram& program, const DotProblem& p, const tile::Target& target) {
  if (chains_on_tensor_cores(program, target)) return *chain_tiles(program, dot_axes(program), p, target);
  const bool gpu = target.kind == tile::TargetKind::cuda;
  if (is_deep(program)) return deep_tiles(p, target);
  if (program.adds_up_dots()) {
    const Index edge = gpu ? 64 : 256;
    return {std::min(edge, p.m), std::min(edge, p.n), 1};
  }
  const Index depth = block_within_pages(program, std::min<Index>(gpu ? 64 : 256, p.k));
  const Index rows = gpu ? 64 : rows_on_cpu(program, p, depth, target);
  return {std::min(rows, p.m), std::min<Index>(256, p.n), depth};
}

}  // namespace

bool dot_on_tensor_cores(const GroupProgram& program, const tile::Target& target) {
  return on_tensor_cores(problem_of(program, dot_axes(program), target), target);
}

// Matrix units take a loop of one dot, of 16- and 8-bit operands (or f32 as tf32) that are blocks of memory
// as they stand, or a chain that the target's schedules take. What is computed on the way goes by the vector
// units.
DotRate dot_rate(const GroupProgram& program, const tile::Target& target) {
  const DotProblem problem = problem_of(program, dot_axes(program), target);
  const auto vector = [&](bool in_memory) {
    DotProblem p = problem;
    p.in_memory = in_memory;
    return DotRate{false, vector_share(p, target) * target.flops_per_s};
  };
  const auto matrix = [&](double share) {
    const double rate = share * target.matrix_flops_per_s;
    return rate > 0 ? DotRate{true, rate} : vector(problem.in_memory);
  };
  if (program.is_chain()) return chains_on_tensor_cores(program, target) ? matrix(1) : vector(false);
  if (multiplied_as_tf32(problem, target)) return matrix(0.5);
  // They take 8 bits by their depth alone.
  const bool fits = target.kind == tile::TargetKind::cuda && size_bytes(problem.dtype) == 1
                        ? on_tensor_cores(problem, target)
                        : size_bytes(problem.dtype) <= 2 && problem.in_memory;
  return fits ? matrix(1) : vector(problem.in_memory);
}

std::vector<TileShape> rank_dot_shapes(const GroupProgram& program, const tile::Target& target) {
  const DotAxes axes = dot_axes(program);
  const DotProblem problem = problem_of(program, axes, target);
  const bool stream = program.is_chain();
  const Index unit = inner_unit(program, target);
  std::vector<TileShape> shapes;
  for (const DotTiles& tiles :
       stream ? std::vector{stream_tiles(program, problem, target)} : rank_dot_tiles(problem, target)) {
    if (program.dot() < 0 &&
        !program.adds_up_dots()) {  // the reduced variable's blocks are the tile's columns
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
                    .depth = program.dot() < 0 ? 1 : tiles.bk,
                    .inner_unit = unit};
    shape.adds_apart = stream && program.dot() >= 0 && chains_on_tensor_cores(program, target) &&
                       adds_apart(program.syms[place_of(program.dot())]);
    if (multiplied_as_tf32(problem, target)) shape.precision = tile::DotPrecision::tf32;
    if (tiles.splits > 1) {
      shape.split_length = round_up(ceil_div(problem.k, tiles.splits), shape.depth);
      shape.splits = ceil_div(problem.k, shape.split_length);
    }
    // Sums of products over many blocks: each block by itself, in f32, and blocks in f64.
    constexpr Index kLongSum = 256 * kManyRounds;  // blocks of f32 are 256 deep, but for few rows or columns
    const Index depth = ceil_div(problem.k, std::max<Index>(shape.splits, 1));
    if (!stream && target.kind == tile::TargetKind::cpu && depth > kLongSum && depth > shape.depth)
      shape.adds_apart = shape.carries_wide = true;
    shapes.push_back(shape);
  }
  const bool leaves_masks = stream && chains_on_tensor_cores(program, target);
  for (TileShape& s : shapes) s.leaves_masks = leaves_masks;
  return shapes;
}

TileShape choose_dot_shape(const GroupProgram& program, const tile::Target& target) {
  return rank_dot_shapes(program, target).front();
}

}  // namespace tilewright::passes
