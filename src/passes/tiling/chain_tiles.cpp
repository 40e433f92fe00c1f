// What a chain of dots holds on chip, and the largest tiles for which there is room.
#include "passes/tiling/chain_tiles.h"

#include "passes/nest/pages.h"
#include "passes/tiling/kept_block.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>
#include <map>

namespace tilewright::passes {

namespace {

constexpr Index kWarpgroupRows = 64;            // of one wgmma
constexpr Index kChainSharedBytes = 224 << 10;  // of 227 KiB; barriers take the rest
constexpr Index kPlaces = 2;                    // one block is fetched while the other is multiplied
constexpr Index kPanelElements = 64;            // of 16 bits in a row of kPanelBytes

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

}  // namespace

ChainUnit chain_unit(const tile::Target& target) {
  if (target.kind != tile::TargetKind::cuda) return ChainUnit::none;
  return target.arch == "sm_90a"   ? ChainUnit::wgmma
         : target.shared_bytes > 0 ? ChainUnit::mma
                                   : ChainUnit::none;
}

Index depth_of(const GroupProgram& program, const Sym& inner_dot) {
  return program.extents[place_of(inner_dot.offset.single_variable())];
}

bool is_deep(const GroupProgram& program) {
  return std::any_of(program.syms.begin(), program.syms.end(),
                     [&](const Sym& s) { return s.inner && depth_of(program, s) > kMostInnerDepth; });
}

namespace {

// A deep dot is a product with more to compute on its tiles: of 256 columns these no longer fit the
// registers, nor of more than 128 where a warp has 32 rows.
constexpr DotTiles kDeepOnTensorCores = {128, 1, 192}, kDeepByThreads = {128, 1, 128};

// Operand a is computed on its way, as weights are widened: that takes the ordinary units longer than the
// tensor cores multiply. A warpgroup's round of 64 by 128 of them is 350 instructions for each scheduler, and
// 700 cycles from its first load to its last product (counted, docs/notes/2026-11-22-few-rows-and-groups.md).
// So that two warpgroups work side by side on every multiprocessor, programs share the blocks.
DotTiles widening_tiles(const DotProblem& p, const tile::Target& target) {
  constexpr Index kRows = 64, kColumns = 128, kStep = 32, kDepth = 128, kFewestBlocks = 4;
  constexpr double kIssueCycles = 350, kRoundCycles = 700, kCyclesPerUs = 1.7e3;
  DotTiles best;
  double least = 0;
  const Index columns = std::min(round_up(p.n, kStep), kColumns);
  for (Index rows : {2 * kRows, kRows}) {
    const Index programs = p.batch * ceil_div(p.m, rows) * ceil_div(p.n, columns);
    const Index most = target.any_size ? 1
                                       : std::clamp<Index>(2 * target.units / programs, 1,
                                                           std::max<Index>(p.k / kFewestBlocks, 1));
    for (Index splits = 1; splits <= most; ++splits) {
      const auto rounds =
          static_cast<double>(ceil_div(programs * splits, Index{target.units}) * ceil_div(p.k, splits));
      const Index groups = rows / kRows;
      const double cycles = std::max(kRoundCycles, kIssueCycles * static_cast<double>(groups)) *
                            static_cast<double>(p.inner_k) / static_cast<double>(kDepth);
      const double us = rounds * cycles / kCyclesPerUs + merge_us(p, splits, target);
      if (least > 0 && us >= least) continue;
      least = us, best = {rows, columns, p.inner_k, splits};
    }
  }
  return best;
}

// What adds up products has two tiles of the result in registers: the sum, and the product that is added
// next, of 256 rows one half after the other.
DotTiles adding_tiles(const DotProblem& p, const tile::Target& target) {
  if (!p.in_memory) return widening_tiles(p, target);
  constexpr Index kRows = 64, kColumns = 128, kStep = 32;
  DotTiles best;
  double least = 0;
  for (Index rows : {4 * kRows, 2 * kRows, kRows})
    for (Index columns : {kColumns, kColumns / 2, kColumns / 4}) {
      // Where b lies by columns of the result, whole rows of 128 bytes.
      if (columns > round_up(p.n, kStep) || (p.b_by_rows && columns < kColumns / 2)) continue;
      const double us = tile::tensor_tiles_us(
          {.bm = rows,
           .bn = columns,
           .k = p.inner_k * p.k,
           .operand_bytes = static_cast<Index>(size_bytes(p.dtype)),
           .programs = static_cast<double>(p.batch * ceil_div(p.m, rows) * ceil_div(p.n, columns)),
           .swath = 16,
           .inside_m = p.m,
           .inside_n = p.n},
          target);
      if (least > 0 && us >= least) continue;
      least = us, best = {rows, columns, p.inner_k};
    }
  return best;
}

// Blocks of memory that a chain keeps in shared memory: those its loop walks in `places`, the others once.
// What two dots read of one buffer is one block.
Index chain_bytes(const GroupProgram& program, const DotAxes& axes, const DotTiles& tiles, Index places) {
  std::map<std::pair<ir::NodeId, bool>, Index>
      blocks;  // with zeros in place of some of it: a block of its own
  for (const Sym& s : program.syms) {
    if (s.kind != Sym::Kind::dot) continue;
    const bool deep = s.inner && depth_of(program, s) > kMostInnerDepth;
    for (int side : {0, 1}) {
      const int operand = s.operands[place_of(side)], block = block_of_operand(program, axes, operand);
      if (block < 0) continue;
      const Sym& o = program.syms[place_of(block)];
      const Index panel = panel_of(o.dtype);
      const Index inner = deep ? panel : s.inner ? round_up(depth_of(program, s), panel) : tiles.bk;
      const Index across = side == 0 ? tiles.bm : s.inner && !s.adds_up ? tiles.bk : tiles.bn;
      const Index stages = deep || o.offset.depends_on(axes.k) ? places : 1;
      Index& bytes = blocks[{o.node, block != operand}];
      bytes = std::max(bytes, stages * across * inner * static_cast<Index>(size_bytes(o.dtype)));
    }
  }
  Index sum = 0;
  for (const auto& [block, bytes] : blocks) sum += bytes;
  return sum;
}

// What a thread of a chain holds in registers, 64 rows to a warpgroup: the sums that the loop carries, the
// products it computes on, and one of these once more, narrowed to be multiplied.
Index chain_registers(const GroupProgram& program, const DotTiles& tiles) {
  Index inner = 0, outer = 0, narrowed = 0;
  for (const Sym& s : program.syms) inner += s.inner ? tiles.bk / 2 : 0;
  for (int s : program.outer_dots()) {
    const Sym& dot = program.syms[place_of(s)];
    outer += (adds_apart(dot) ? 2 : 1) * tiles.bn / 2;
    narrowed = std::max(narrowed, tiles.bk * static_cast<Index>(size_bytes(dot.meet[0])) / 8);
  }
  return outer + inner + (inner > 0 ? narrowed : 0);
}

// Whether what they hold fits: registers for one, two or three warpgroups, of 255, 232 and 160 that a thread
// has, and shared memory.
bool chain_fits(const GroupProgram& program, const DotAxes& axes, const DotTiles& tiles) {
  constexpr Index kRegisters[] = {216, 208, 136};
  return chain_registers(program, tiles) <= kRegisters[tiles.bm / kWarpgroupRows - 1] &&
         chain_bytes(program, axes, tiles, kPlaces) <= kChainSharedBytes;
}

// Two warpgroups of 64 rows, or three where that leaves no more units without work: on an H200 three were
// faster by an eighth (docs/notes/2026-11-21-dot-chains.md). Then the longest blocks of the loop that fit.
// None: a chain that tensor cores have no room for.
std::optional<DotTiles> tensor_stream_tiles(const GroupProgram& program, const DotAxes& axes,
                                            const DotProblem& p, const tile::Target& target) {
  constexpr Index kMostColumns = 256;
  constexpr Index kFewestKeys = 32;  // of a block: an accumulator's columns
  constexpr double kThreeAtOnce = 1.13;
  const auto time = [&](Index groups, double rate) {
    const Index rows = groups * kWarpgroupRows;
    const Index waves = ceil_div(ceil_div(p.m, rows) * p.batch, std::max<Index>(target.units, 1));
    return static_cast<double>(waves * rows) / rate;
  };
  std::vector<Index> groups = {2, 1};
  if (p.m <= kWarpgroupRows) groups = {1};
  const Index columns = std::min(round_up(p.n, kPanelElements), kMostColumns);
  if (p.m > kWarpgroupRows && columns <= kPanelElements && time(3, kThreeAtOnce) < time(2, 1))
    groups.insert(groups.begin(), 3);
  // Of 8 bits, operands of the last product are whole rows of the loop's blocks.
  const std::vector<int> outer = program.outer_dots();
  const bool of8 = std::any_of(outer.begin(), outer.end(),
                               [&](int s) { return size_bytes(program.syms[place_of(s)].meet[1]) == 1; });
  // Nothing is computed in the loop: it need not hold all columns, and short blocks are fetched further
  // ahead.
  const bool multiplies_alone = !program.has_inner_dots() && program.levels() == 1;
  const Index bn = multiplies_alone ? std::min(columns, 2 * kPanelElements) : columns;
  std::vector<Index> depths = {kPanelElements};
  if (!multiplies_alone) depths = {2 * kPanelElements, kPanelElements, kPanelElements / 2};
  for (Index g : groups)
    for (Index depth : depths) {
      const DotTiles tiles{g * kWarpgroupRows, bn, block_within_pages(program, depth)};
      if (of8 && tiles.bk % kPanelBytes != 0) continue;
      if (tiles.bk >= kFewestKeys && chain_fits(program, axes, tiles)) return tiles;
    }
  return std::nullopt;
}

// mma.sync: the warps read blocks of shared memory themselves, half as often with 32 rows as with 16; eight
// of them on a multiprocessor hide what each waits for: two programs of four, or one.
struct WarpRows {
  Index rows, warps, programs;
  Index of_warp() const { return rows / warps; }
};

bool copied_chain_fits(const GroupProgram& program, const DotAxes& axes, const DotTiles& tiles,
                       const WarpRows& way, const tile::Target& target) {
  // Of 255, beside fragments of operands, statistics of the rows, and addresses.
  constexpr Index kRegisters = 200, kRows = 16;
  // A block's: what comes before the first multiple of 1024, and the driver's own KiB, which a multiprocessor
  // has besides for one of them; and what kernels keep for small arrays.
  constexpr Index kKibibyte = 1 << 10, kReserved = 2 * kKibibyte, kStatic = 2 * kKibibyte;
  // While one of two blocks is multiplied, the other's place is filled; with more products a round they are
  // read until its end.
  const auto dots = std::count_if(program.syms.begin(), program.syms.end(),
                                  [](const Sym& s) { return s.kind == Sym::Kind::dot; });
  const Index places = dots == 2 && program.has_inner_dots() ? 1 : kPlaces;
  const Index bytes = chain_bytes(program, axes, tiles, places);
  return chain_registers(program, tiles) * way.of_warp() / kRows <= kRegisters &&
         bytes + kKibibyte + kStatic <= target.shared_bytes &&
         way.programs * (bytes + kReserved) <= target.shared_bytes + kKibibyte;
}

std::optional<DotTiles> copied_stream_tiles(const GroupProgram& program, const DotAxes& axes,
                                            const DotProblem& p, const tile::Target& target) {
  constexpr Index kMostColumns = 256, kFewestKeys = 32, kFewRows = 64;
  constexpr WarpRows kWays[] = {{128, 4, 2}, {128, 8, 1}, {64, 4, 2}, {64, 4, 1}};
  const Index columns = std::min(round_up(p.n, kPanelElements), kMostColumns);
  const bool multiplies_alone = !program.has_inner_dots() && program.levels() == 1;
  const Index bn = multiplies_alone ? std::min(columns, 2 * kPanelElements) : columns;
  std::vector<Index> depths = {kPanelElements};
  if (!multiplies_alone) depths = {2 * kPanelElements, kPanelElements, kPanelElements / 2};
  // Halves where whole tiles would leave units without work.
  const Index whole = ceil_div(p.m, 2 * kFewRows) * ceil_div(p.n, bn) * p.batch;
  const bool few = p.m <= kFewRows || (!target.any_size && whole < target.units);
  for (const WarpRows& way : kWays)
    for (Index depth : depths) {
      const DotTiles tiles{way.rows, bn, block_within_pages(program, depth)};
      if ((few && way.rows > kFewRows) || tiles.bk < kFewestKeys) continue;
      if (copied_chain_fits(program, axes, tiles, way, target)) return tiles;
    }
  return std::nullopt;
}

}  // namespace

std::optional<DotTiles> chain_tiles(const GroupProgram& program, const DotAxes& axes,
                                    const DotProblem& problem, const tile::Target& target) {
  const bool wgmma = chain_unit(target) == ChainUnit::wgmma;
  if (!program.adds_up_dots() && !is_deep(program))
    return wgmma ? tensor_stream_tiles(program, axes, problem, target)
                 : copied_stream_tiles(program, axes, problem, target);
  const DotTiles tiles = program.adds_up_dots() ? adding_tiles(problem, target)
                         : wgmma                ? kDeepOnTensorCores
                                                : kDeepByThreads;
  const Index room = wgmma ? kChainSharedBytes : target.shared_bytes;
  if (chain_bytes(program, axes, tiles, kPlaces) > room) return std::nullopt;
  return tiles;
}

}  // namespace tilewright::passes
