// The problem a program's dots pose, put to the models of tiles.
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/any_size_edge.h"

#include "passes/nest/dot_axes.h"
#include "passes/nest/epilogue_reductions.h"
#include "passes/nest/pages.h"
#include "passes/tiling/b2b_tiles.h"
#include "passes/tiling/kept_block.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace tilewright::passes {

namespace {

// Whether a load reads blocks: one step is 1, and others are as the rules want them. A page's dimension is
// picked by a table, a group's matrix by its index.
bool is_read_in_blocks(const LoopNest& nest, const Expr& s, const tile::BlockRules& rules) {
  const Index bytes = static_cast<Index>(size_bytes(s.dtype));
  if (s.kind != Expr::Kind::load || !rules.takes_start(s.offset.constant() * bytes)) return false;
  const std::optional<Pages> pages = pages_of(nest, s);
  const bool whole = s.dynamic.empty() && s.mask < 0, picked = !whole && picks_a_block(nest, s);
  if (!pages && (!s.offset.is_affine() || (!whole && !picked))) return false;
  std::vector<Index> strides;
  for (const IndexExpr::Term& t : s.offset.terms()) strides.push_back(t.factor);
  if (pages || (picked && moved_along(nest, s) < 0)) strides.push_back(s.dynamic[0].second);
  const auto ones = std::count(strides.begin(), strides.end(), 1);
  return ones == 1 && rules.takes_axes(static_cast<Index>(strides.size())) &&
         std::all_of(strides.begin(), strides.end(),
                     [&](Index stride) { return stride == 1 || rules.takes_stride(stride * bytes); });
}

// A block of it: one of the block's two axes is contiguous.
bool is_block(const LoopNest& nest, int operand, int row, int k, const tile::BlockRules& rules) {
  const Expr& s = nest.exprs[at(operand)];
  return row >= 0 && is_read_in_blocks(nest, s, rules) &&
         (s.offset.factor(row) == 1 || s.offset.factor(k) == 1);
}

// Lines that a row of an operand's blocks lies in; computed ones take in none.
double lines_of(const LoopNest& nest, int operand, const tile::BlockRules& rules) {
  const Expr& s = nest.exprs[at(operand)];
  if (s.kind != Expr::Kind::load || !s.offset.is_affine()) return 1;
  return rules.lines(row_step_bytes(s));
}

// One loop of one dot, whose sums a second kernel can add before the rest is computed of them.
bool can_split(const LoopNest& nest) {
  return nest.dot() >= 0 && !nest.is_b2b() && nest.reduced_variables().size() == 1 &&
         std::none_of(nest.exprs.begin(), nest.exprs.end(),
                      [](const Expr& s) {
                        return s.kind == Expr::Kind::reduce || s.kind == Expr::Kind::epilogue_reduction;
                      }) &&
         !nest.stores_along_reduced();
}

// Pointwise ones that are computed of the result.
int ops_after_dots(const LoopNest& nest) {
  std::vector<bool> after(nest.exprs.size(), false);
  int ops = 0;
  for (std::size_t s = 0; s < after.size(); ++s) {
    const Expr& expr = nest.exprs[s];
    after[s] = nest.is_outer_dot(static_cast<int>(s)) ||
               std::any_of(expr.operands.begin(), expr.operands.end(), [&](int o) { return after[at(o)]; });
    ops += after[s] && (expr.kind == Expr::Kind::op || expr.kind == Expr::Kind::epilogue_reduction) ? 1 : 0;
  }
  return ops;
}

// Block rules of the target's first unit: what it does not copy, others take from memory as it lies.
tile::BlockRules block_rules(const tile::Target& target) {
  return target.matrix_units.empty() ? tile::BlockRules{} : target.matrix_units.front().blocks;
}

// The products of a back-to-back matmul stay exact: its schedules take 16 bits.
DotProblem problem_of(const LoopNest& nest, const DotAxes& axes, const tile::Target& target) {
  const auto extent = [&](int v) { return v < 0 ? Index{1} : std::max<Index>(nest.extents[at(v)], 1); };
  DotProblem problem{.batch = 1, .m = extent(axes.m), .n = extent(axes.n), .k = extent(axes.k)};
  for (int v : nest.parallel_variables())
    if (v != axes.m && v != axes.n) problem.batch *= extent(v);
  const Expr& dot = nest.exprs[at(axes.dot)];
  if (dot.inner) problem.inner_k = nest.extents[at(dot.offset.single_variable())];
  problem.dtype = dot.operand_dtypes[0];
  problem.in_memory = std::all_of(dot.operands.begin(), dot.operands.end(),
                                  [&](int o) { return nest.exprs[at(o)].kind == Expr::Kind::load; });
  const tile::BlockRules rules = block_rules(target);
  problem.copied = is_block(nest, dot.operands[0], axes.m, axes.k, rules) &&
                   is_block(nest, dot.operands[1], axes.n, axes.k, rules);
  problem.a_lines = lines_of(nest, dot.operands[0], rules);
  problem.b_lines = lines_of(nest, dot.operands[1], rules);
  const Expr& b = nest.exprs[at(dot.operands[1])];
  problem.b_by_rows = axes.n >= 0 && b.kind == Expr::Kind::load && b.offset.factor(axes.n) == 1;
  const auto by_k = [&](int operand) {
    const Expr& s = nest.exprs[at(operand)];
    return s.kind == Expr::Kind::load && s.offset.factor(axes.k) == 1;
  };
  problem.b_by_k = by_k(dot.operands[1]);
  problem.by_k = problem.b_by_k && by_k(dot.operands[0]);
  problem.split_k = can_split(nest);
  const std::vector<bool> held = held_variables(nest);
  problem.whole_m = axes.m >= 0 && held[at(axes.m)];
  problem.whole_n = axes.n >= 0 && held[at(axes.n)];
  problem.ops_after = ops_after_dots(nest);
  problem.rounds = target.tf32 && !nest.is_b2b();
  problem.two_level = dot.two_level;
  return problem;
}

// What operand a is computed from lies by its depth, as its registers hold it: turning it around would take
// an exchange between the threads.
bool computed_k_major(const LoopNest& nest, const DotAxes& axes, const Expr& dot) {
  if (!dot.inner || block_of_operand(nest, axes, dot.operands[0]) >= 0) return true;
  const int depth = dot.offset.single_variable();
  const std::vector<bool> parts = nest.made_of({dot.operands[0]});
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Expr& m = nest.exprs[s];
    const bool block =
        parts[s] && m.kind == Expr::Kind::load && m.offset.depends_on(depth) && m.offset.depends_on(axes.m);
    if (block && m.offset.factor(depth) != 1) return false;
  }
  return true;
}

// Whether a unit takes a dot of a back-to-back matmul. What it takes by the depth alone may not be computed
// inside the loop.
bool takes_dot(const LoopNest& nest, const DotAxes& axes, const Expr& dot, const tile::MatrixUnit& unit) {
  const int a_block = block_of_operand(nest, axes, dot.operands[0]),
            b_block = block_of_operand(nest, axes, dot.operands[1]);
  const bool a_loaded = a_block >= 0;
  const Expr &a = nest.exprs[at(a_loaded ? a_block : dot.operands[0])],
             &b = nest.exprs[at(b_block >= 0 ? b_block : dot.operands[1])];
  const tile::MatrixOperands* operands = exact_operands(unit, dot.operand_dtypes[0], dot.operand_dtypes[1]);
  if (operands == nullptr || !is_read_in_blocks(nest, b, unit.blocks) ||
      (a_loaded && !is_read_in_blocks(nest, a, unit.blocks)))
    return false;
  if (!operands->k_major) return (a_loaded || operands->computed) && computed_k_major(nest, axes, dot);
  const int depth = dot.inner ? dot.offset.single_variable() : axes.k;
  // Blocks whose products are added up are whole.
  if (dot.scaled_accumulation && depth_of(nest, dot) % unit.blocks.row_bytes != 0) return false;
  return b.offset.factor(depth) == 1 &&
         (a_loaded ? a.offset.factor(depth) == 1 : operands->computed && !dot.inner);
}

// Whether what is computed beside the dots reads a tile whose rows are the contiguous axis, as a transposed
// bias of scores is: threads hold rows, and would exchange it on chip, where the blocks of dots fill the
// room.
bool turns_tiles(const LoopNest& nest, const DotAxes& axes) {
  std::set<int> operands;
  for (const Expr& s : nest.exprs)
    if (s.kind == Expr::Kind::dot)
      for (int o : s.operands) operands.insert({o, block_of_operand(nest, axes, o)});
  for (int i = 0; i < static_cast<int>(nest.exprs.size()); ++i) {
    const Expr& s = nest.exprs[at(i)];
    const bool block = s.kind == Expr::Kind::load && s.offset.is_affine() && s.dynamic.empty() && s.mask < 0;
    if (!block || operands.count(i) > 0 || s.offset.factor(axes.m) != 1) continue;
    // What adds up products walks blocks of k one by one: no tile's columns.
    const bool by_k = !nest.accumulates_scaled() && s.offset.depends_on(axes.k);
    if (by_k || (axes.n >= 0 && s.offset.depends_on(axes.n))) return true;
  }
  return false;
}

}  // namespace

Index row_step_bytes(const Expr& load) {
  Index step = load.offset.constant();
  for (const IndexExpr::Term& t : load.offset.terms())
    if (t.factor != 1) step = std::gcd(step, t.factor);
  for (const auto& [index, stride] : load.dynamic) step = std::gcd(step, stride);
  return step * static_cast<Index>(size_bytes(load.dtype));
}

std::string_view why_not_on_matrix_unit(const LoopNest& nest, const tile::Target& target) {
  constexpr Index kFewest = 2;  // rows: what overhangs is zeros
  const tile::MatrixUnit* unit = b2b_unit(target);
  if (unit == nullptr) return "the target has no matrix unit for back-to-back matmuls";
  const DotAxes axes = dot_axes(nest);
  if (axes.m < 0 || nest.extents[at(axes.m)] < kFewest) return "a matrix unit wants several rows";
  if (axes.n < 0 && (nest.dot() >= 0 || nest.accumulates_scaled()))
    return "a matrix unit wants several columns";
  if (std::any_of(nest.exprs.begin(), nest.exprs.end(), [&](const Expr& s) {
        return s.kind == Expr::Kind::dot && !takes_dot(nest, axes, s, *unit);
      }))
    return "the matrix unit does not take the operands of a dot as they are";
  if (nest.accumulates_scaled() && !(unit->b2b->scaled_accumulation && unit->rate))
    return "the target's matrix unit does not add up block by block";
  if (turns_tiles(nest, axes)) return "a tile beside the dots lies by rows, and would be transposed around";
  return b2b_tiles(nest, axes, problem_of(nest, axes, target), target).empty()
             ? "its tiles have no room in registers or on chip"
             : "";
}

namespace {

// The unit to which the depth of a dot inside the loop is filled up: whole rows of blocks.
Index inner_unit(const LoopNest& nest, const tile::Target& target) {
  Index unit = 1;
  if (!nest.is_b2b() || !b2b_on_matrix_unit(nest, target)) return unit;
  for (const Expr& s : nest.exprs)
    if (s.inner) unit = std::max(unit, panel_of(*b2b_unit(target), s.operand_dtypes[1]));
  return unit;
}

// The depth of a dot inside the loop that is on chip at once.
Index inner_depth(const LoopNest& nest, const tile::Target& target) {
  if (!is_deep(nest)) return kMostInnerDepth;
  return b2b_on_matrix_unit(nest, target) ? b2b_unit(target)->b2b->deep_depth : target.b2b_blocks.inner_depth;
}

// Rows of a back-to-back matmul's blocks on the ordinary units. More of them share what a block of operand b
// costs to prepare, where what is computed of the scores fits the part of a cache that is a program's own.
Index b2b_rows(const LoopNest& nest, const DotProblem& p, Index columns, const tile::Target& target) {
  const tile::B2bBlocks& cuts = target.b2b_blocks;
  const auto inner = std::count_if(nest.exprs.begin(), nest.exprs.end(),
                                   [](const Expr& s) { return s.kind == Expr::Kind::dot && s.inner; });
  const Index bytes = 2 * static_cast<Index>(inner) * cuts.wide_rows * columns * 4;
  const bool wide = cuts.wide_rows > 0 && !target.any_size && p.k >= cuts.wide_loop &&
                    bytes <= target.row_bytes &&
                    p.batch * ceil_div(p.m, cuts.wide_rows) >= cuts.wide_programs * target.units;
  return wide ? cuts.wide_rows : cuts.rows;
}

// A back-to-back matmul and reductions in one loop: blocks of the scores, rows × depth, stay on chip with
// what is carried; of a deep one, what is reduced to epilogue reductions of the rows.
std::vector<DotTiles> stream_tiles(const LoopNest& nest, const DotProblem& p, const tile::Target& target) {
  if (b2b_on_matrix_unit(nest, target)) return b2b_tiles(nest, dot_axes(nest), p, target);
  const tile::B2bBlocks& cuts = target.b2b_blocks;
  const auto edge = [&](Index extent, Index most) {
    return target.any_size ? any_size_edge(target, extent, most) : std::min(most, extent);
  };
  if (is_deep(nest)) return {{edge(p.m, cuts.edge), 1, edge(p.k, cuts.edge)}};
  if (nest.accumulates_scaled()) return {{edge(p.m, cuts.edge), edge(p.n, cuts.edge), 1}};
  const Index depth = block_within_pages(nest, edge(p.k, cuts.walked));
  return {{edge(p.m, b2b_rows(nest, p, depth, target)), edge(p.n, cuts.columns), depth}};
}

}  // namespace

bool dot_on_matrix_unit(const LoopNest& nest, const tile::Target& target) {
  return bool(matrix_choice(problem_of(nest, dot_axes(nest), target), target));
}

// Matrix units take a loop of one dot whose operands are blocks of memory as they stand, or a back-to-back
// matmul that the target's schedules take. What is computed on the way goes by the vector units.
DotRate dot_rate(const LoopNest& nest, const tile::Target& target) {
  const DotProblem problem = problem_of(nest, dot_axes(nest), target);
  const auto vector = [&](bool in_memory) {
    DotProblem p = problem;
    p.in_memory = in_memory;
    return DotRate{false, vector_share(p, target) * target.flops_per_s};
  };
  const auto matrix = [&](double share) {
    const double rate = share * target.matrix_flops_per_s;
    return rate > 0 ? DotRate{true, rate} : vector(problem.in_memory);
  };
  if (nest.is_b2b()) return b2b_on_matrix_unit(nest, target) ? matrix(1) : vector(false);
  if (const MatrixChoice by = matrix_choice(problem, target); by.rounds()) return matrix(by.operands->rate);
  return at_matrix_rate(problem, target) ? matrix(1) : vector(problem.in_memory);
}

std::vector<TileShape> rank_dot_shapes(const LoopNest& nest, const tile::Target& target) {
  const DotAxes axes = dot_axes(nest);
  const DotProblem problem = problem_of(nest, axes, target);
  const bool stream = nest.is_b2b();
  const Index unit = inner_unit(nest, target);
  const bool rounds = matrix_choice(problem, target).rounds();
  std::vector<TileShape> shapes;
  for (const DotTiles& tiles :
       stream ? stream_tiles(nest, problem, target) : rank_dot_tiles(problem, target)) {
    if (nest.dot() < 0 &&
        !nest.accumulates_scaled()) {  // the reduced variable's blocks are the tile's columns
      shapes.push_back({.row = axes.m,
                        .column = axes.k,
                        .rows = tiles.bm,
                        .columns = tiles.bk,
                        .looped = true,
                        .inner_depth = inner_depth(nest, target),
                        .inner_unit = unit});
      continue;
    }
    TileShape shape{.row = axes.m,
                    .column = axes.n,
                    .rows = tiles.bm,
                    .columns = tiles.bn,
                    .looped = true,
                    .depth_variable = axes.k,
                    .depth = nest.dot() < 0 ? 1 : tiles.bk,
                    .inner_unit = unit};
    shape.two_level_accumulation = stream && nest.dot() >= 0 && b2b_on_matrix_unit(nest, target) &&
                                   two_level_accumulation(*b2b_unit(target), nest.exprs[at(nest.dot())]);
    if (rounds) shape.precision = tile::DotPrecision::tf32;
    if (problem.two_level) shape.precision = tile::DotPrecision::two_level;
    if (tiles.split_k > 1) {
      shape.split_k_length = round_up(ceil_div(problem.k, tiles.split_k), shape.depth);
      shape.split_k = ceil_div(problem.k, shape.split_k_length);
    }
    // Sums of one thread over many blocks: each block by itself, in f32, and blocks in f64. Blocks of few
    // rows or columns are counted as f32's.
    const Index depth = ceil_div(problem.k, std::max<Index>(shape.split_k, 1));
    if (!stream && target.packed_dots && depth > target.packed_dots->depth_bytes / 4 * kManyRounds &&
        depth > shape.depth)
      shape.two_level_accumulation = shape.carries_wide = true;
    shapes.push_back(shape);
  }
  const bool leaves_masks = stream && b2b_on_matrix_unit(nest, target);
  for (TileShape& s : shapes) s.leaves_masks = leaves_masks;
  return shapes;
}

TileShape choose_dot_shape(const LoopNest& nest, const tile::Target& target) {
  return rank_dot_shapes(nest, target).front();
}

}  // namespace tilewright::passes
