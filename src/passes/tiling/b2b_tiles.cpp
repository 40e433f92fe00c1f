// What a back-to-back matmul holds on chip, and the largest tiles for which there is room.
#include "passes/tiling/b2b_tiles.h"

#include "passes/nest/pages.h"
#include "passes/tiling/choose_dot_tiles.h"
#include "passes/tiling/kept_block.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

using tile::B2bCuts;
using tile::B2bWay;
using tile::MatrixUnit;
using tile::ScaledAccumulationCuts;

constexpr Index kStages = 2;  // one block is fetched while the other is multiplied

}  // namespace

const MatrixUnit* b2b_unit(const tile::Target& target) {
  const auto unit = std::find_if(target.matrix_units.begin(), target.matrix_units.end(),
                                 [](const MatrixUnit& u) { return u.b2b.has_value(); });
  return unit == target.matrix_units.end() ? nullptr : &*unit;
}

Index depth_of(const LoopNest& nest, const Expr& inner_dot) {
  return nest.extents[at(inner_dot.offset.single_variable())];
}

bool is_deep(const LoopNest& nest) {
  return std::any_of(nest.exprs.begin(), nest.exprs.end(),
                     [&](const Expr& s) { return s.inner && depth_of(nest, s) > kMostInnerDepth; });
}

bool two_level_accumulation(const MatrixUnit& unit, const Expr& dot) {
  const tile::MatrixOperands* operands = exact_operands(unit, dot.operand_dtypes[0], dot.operand_dtypes[1]);
  return operands != nullptr && operands->added_apart;
}

namespace {

// Operand a is computed on its way, which takes the ordinary units longer than the matrix unit multiplies. So
// that groups of rows work side by side on every unit, programs share the blocks.
DotTiles computed_tiles(const DotProblem& p, const MatrixUnit& unit, const ScaledAccumulationCuts& cuts,
                        const tile::Target& target) {
  DotTiles best;
  double least = 0;
  const Index columns = std::min(round_up(p.n, unit.column_step), cuts.computed_columns);
  for (Index rows : cuts.computed_rows) {
    const Index programs = p.programs(rows, columns);
    const Index most = most_split_k(programs, p.k, cuts.fewest_blocks, target);
    for (Index split_k = 1; split_k <= most; ++split_k) {
      const auto rounds =
          static_cast<double>(ceil_div(programs * split_k, Index{target.units}) * ceil_div(p.k, split_k));
      const Index groups = rows / cuts.computed_group;
      const double cycles = std::max(cuts.round_cycles, cuts.issue_cycles * static_cast<double>(groups)) *
                            static_cast<double>(p.inner_k) / static_cast<double>(cuts.computed_depth);
      const double us = rounds * cycles / cuts.cycles_per_us + split_k_combine_us(p, split_k, target);
      if (least > 0 && us >= least) continue;
      least = us, best = {rows, columns, p.inner_k, split_k};
    }
  }
  return best;
}

DotTiles adding_tiles(const DotProblem& p, const MatrixUnit& unit, const tile::Target& target) {
  const ScaledAccumulationCuts& cuts = *unit.b2b->scaled_accumulation;
  if (!p.in_memory) return computed_tiles(p, unit, cuts, target);
  DotTiles best;
  double least = 0;
  for (Index rows : cuts.rows)
    for (Index columns : cuts.columns) {
      // Blocks of an operand b that lies by columns of the result have whole rows.
      if (columns > round_up(p.n, unit.column_step) ||
          (p.b_by_rows && columns * p.operand_bytes() < unit.blocks.row_bytes))
        continue;
      const double us = tile::tensor_tiles_us({.bm = rows,
                                               .bn = columns,
                                               .k = p.inner_k * p.k,
                                               .operand_bytes = p.operand_bytes(),
                                               .programs = static_cast<double>(p.programs(rows, columns)),
                                               .group_m = unit.rate->group_m,
                                               .inside_m = p.m,
                                               .inside_n = p.n},
                                              *unit.rate, target);
      if (least > 0 && us >= least) continue;
      least = us, best = {rows, columns, p.inner_k};
    }
  return best;
}

// Blocks of memory that a back-to-back matmul keeps on chip: those its loop walks in `places`, the others
// once. What two dots read of one buffer is one block.
Index b2b_bytes(const LoopNest& nest, const DotAxes& axes, const MatrixUnit& unit, const DotTiles& tiles,
                Index places) {
  std::map<std::pair<ir::NodeId, bool>, Index>
      blocks;  // with zeros in place of some of it: a block of its own
  for (const Expr& s : nest.exprs) {
    if (s.kind != Expr::Kind::dot) continue;
    const bool deep = s.inner && depth_of(nest, s) > kMostInnerDepth;
    for (int side : {0, 1}) {
      const int operand = s.operands[at(side)], block = block_of_operand(nest, axes, operand);
      if (block < 0) continue;
      const Expr& o = nest.exprs[at(block)];
      const Index panel = panel_of(unit, o.dtype);
      const Index inner = deep ? panel : s.inner ? round_up(depth_of(nest, s), panel) : tiles.bk;
      const Index across = side == 0 ? tiles.bm : s.inner && !s.scaled_accumulation ? tiles.bk : tiles.bn;
      const Index stages = deep || o.offset.depends_on(axes.k) ? places : 1;
      Index& bytes = blocks[{o.node, block != operand}];
      bytes = std::max(bytes, stages * across * inner * static_cast<Index>(size_bytes(o.dtype)));
    }
  }
  Index sum = 0;
  for (const auto& [block, bytes] : blocks) sum += bytes;
  return sum;
}

// What a thread of a back-to-back matmul holds in registers: the sums that the loop carries, the products it
// computes on, and one of these once more, narrowed to be multiplied.
Index b2b_registers(const LoopNest& nest, const MatrixUnit& unit, const B2bWay& way, const DotTiles& tiles) {
  Index inner = 0, outer = 0, narrowed = 0;
  for (const Expr& s : nest.exprs) inner += s.inner ? tiles.bk : 0;
  for (int s : nest.outer_dots()) {
    const Expr& dot = nest.exprs[at(s)];
    outer += (two_level_accumulation(unit, dot) ? 2 : 1) * tiles.bn;
    narrowed = std::max(narrowed, tiles.bk * static_cast<Index>(size_bytes(dot.operand_dtypes[0])) / 4);
  }
  return (outer + inner + (inner > 0 ? narrowed : 0)) * way.rows / way.threads;
}

// Places of the pipeline for blocks. One is refilled between the two products of a round; with more products
// blocks are read until its end.
Index places_of(const LoopNest& nest, const B2bCuts& cuts) {
  const auto dots = std::count_if(nest.exprs.begin(), nest.exprs.end(),
                                  [](const Expr& s) { return s.kind == Expr::Kind::dot; });
  return cuts.refills_between && dots == 2 && nest.has_inner_dots() ? 1 : kStages;
}

class StreamTiles {
 public:
  StreamTiles(const LoopNest& nest, const DotAxes& axes, const DotProblem& problem, const MatrixUnit& unit,
              const tile::Target& target)
      : nest_(nest), axes_(axes), p_(problem), unit_(unit), cuts_(*unit.b2b), target_(target) {}

  // Tiles that are worth it and have room, in the order of the ways, of each the longest blocks first.
  std::vector<DotTiles> run() const {
    // Narrow operands of the last product are whole rows of the loop's blocks.
    const std::vector<int> outer = nest_.outer_dots();
    const bool of8 = std::any_of(outer.begin(), outer.end(), [&](int s) {
      return size_bytes(nest_.exprs[at(s)].operand_dtypes[1]) == 1;
    });
    const Index row = panel();
    std::vector<Index> depths = {row};
    if (!multiplies_alone()) depths = {2 * row, row, row / 2};
    std::vector<DotTiles> out;
    for (std::size_t w = 0; w < cuts_.ways.size(); ++w)
      for (Index depth : depths) {
        const B2bWay& way = cuts_.ways[w];
        const DotTiles tiles{way.rows, columns(), block_within_pages(nest_, depth)};
        if (!is_worth(w) || tiles.bk < unit_.column_step || (of8 && tiles.bk % unit_.blocks.row_bytes != 0))
          continue;
        if (fits(way, tiles)) out.push_back(tiles);
      }
    return out;
  }

 private:
  Index panel() const { return panel_of(unit_, DType::bf16); }
  Index all_columns() const { return std::min(round_up(p_.n, panel()), cuts_.most_columns); }
  // Whether the loop computes nothing else: it need not hold all columns, and short blocks are fetched
  // further ahead.
  bool multiplies_alone() const { return !nest_.has_inner_dots() && nest_.levels() == 1; }
  Index columns() const { return multiplies_alone() ? std::min(all_columns(), 2 * panel()) : all_columns(); }

  bool fits(const B2bWay& way, const DotTiles& tiles) const {
    return b2b_registers(nest_, unit_, way, tiles) <= way.registers &&
           b2b_bytes(nest_, axes_, unit_, tiles, places_of(nest_, cuts_)) <= way.room_bytes;
  }

  double waves_time(const B2bWay& way) const {
    const Index waves = ceil_div(ceil_div(p_.m, way.rows) * p_.batch, std::max<Index>(target_.units, 1));
    return static_cast<double>(waves * way.rows);
  }

  // Few rows a program where more would stand empty, or leave units without work.
  bool is_worth(std::size_t w) const {
    const B2bWay& way = cuts_.ways[w];
    const auto rows = [](const B2bWay& a, const B2bWay& b) { return a.rows < b.rows; };
    const Index fewest = std::min_element(cuts_.ways.begin(), cuts_.ways.end(), rows)->rows;
    const Index whole = ceil_div(p_.m, cuts_.ways[0].rows) * ceil_div(p_.n, columns()) * p_.batch;
    const bool few = p_.m <= fewest || (cuts_.fills_units && !target_.any_size && whole < target_.units);
    if (few && way.rows > fewest) return false;
    if (way.most_columns > 0 && all_columns() > way.most_columns) return false;
    return way.faster == 0 || w + 1 == cuts_.ways.size() ||
           waves_time(way) / way.faster < waves_time(cuts_.ways[w + 1]);
  }

  const LoopNest& nest_;
  const DotAxes& axes_;
  const DotProblem& p_;
  const MatrixUnit& unit_;
  const B2bCuts& cuts_;
  const tile::Target& target_;
};

}  // namespace

std::vector<DotTiles> b2b_tiles(const LoopNest& nest, const DotAxes& axes, const DotProblem& problem,
                                const tile::Target& target) {
  const MatrixUnit& unit = *b2b_unit(target);
  if (!nest.accumulates_scaled() && !is_deep(nest))
    return StreamTiles(nest, axes, problem, unit, target).run();
  const tile::DotTile& deep = unit.b2b->deep;
  const DotTiles tiles =
      nest.accumulates_scaled() ? adding_tiles(problem, unit, target) : DotTiles{deep.rows, 1, deep.columns};
  if (b2b_bytes(nest, axes, unit, tiles, kStages) > unit.b2b->room_bytes) return {};
  return {tiles};
}

}  // namespace tilewright::passes
