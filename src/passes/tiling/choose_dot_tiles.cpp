// A search over the tiles that the target's first unit for the product has.
#include "passes/tiling/choose_dot_tiles.h"

#include "passes/tiling/packed_tiles.h"
#include "passes/tiling/ranked_tiles.h"

#include <tilewright/tile/tensor_rate.h>

#include <algorithm>

namespace tilewright::passes {

namespace {

using tile::DotTile;
using tile::MatrixOperands;
using tile::MatrixUnit;
using tile::Target;

// A tile that holds what it must, of whole rows of b's blocks.
bool is_usable(const DotTile& t, const MatrixUnit& unit, const DotProblem& p) {
  return p.is_held(t.rows, t.columns) &&
         (!p.b_by_rows || t.columns * p.operand_bytes() >= unit.blocks.row_bytes);
}

bool takes(const MatrixUnit& unit, const MatrixOperands& row, const DotProblem& p) {
  return row.dtype == p.dtype && (!row.rounded || p.rounds) && (!row.k_major || p.by_k) &&
         (p.copied || (unit.other_blocks && p.in_memory)) && std::min(p.m, p.n) >= row.fewest &&
         p.k >= row.fewest_depth &&
         std::any_of(row.tiles_of(p.two_level).begin(), row.tiles_of(p.two_level).end(),
                     [&](const DotTile& t) { return is_usable(t, unit, p); });
}

}  // namespace

MatrixChoice matrix_choice(const DotProblem& problem, const Target& target) {
  for (const MatrixUnit& unit : target.matrix_units)
    for (const MatrixOperands& row : unit.operands)
      if (takes(unit, row, problem)) return {&unit, &row};
  return {};
}

const MatrixOperands* exact_operands(const MatrixUnit& unit, DType a, DType b) {
  if (a != b && !(is_f8(a) && is_f8(b))) return nullptr;
  for (const MatrixOperands& row : unit.operands)
    if (row.dtype == a && !row.rounded) return &row;
  return nullptr;
}

bool at_matrix_rate(const DotProblem& p, const Target& target) {
  if (target.packed_dots) {
    const std::vector<DType>& types = target.packed_dots->matrix_types;
    return p.in_memory && std::find(types.begin(), types.end(), p.dtype) != types.end();
  }
  for (const MatrixUnit& unit : target.matrix_units)
    for (const MatrixOperands& row : unit.operands)
      if (row.dtype == p.dtype && !row.rounded && (row.k_major ? takes(unit, row, p) : p.in_memory))
        return true;
  return false;
}

// The programs write their sums, all at the same time, and the second kernel reads them.
double split_k_combine_us(const DotProblem& p, Index split_k, const Target& target) {
  if (split_k == 1) return 0;
  const double bytes = 4 * static_cast<double>(split_k * p.batch * p.m * p.n);
  const double read_s = bytes / target.bytes_per_s(bytes);
  return (target.launch_s + bytes / (target.burst_share * target.memory_bytes_per_s) + read_s) * 1e6;
}

Index most_split_k(Index programs, Index rounds, Index fewest, const Target& target) {
  if (target.any_size) return 1;
  return std::clamp<Index>(2 * target.units / programs, 1, std::max<Index>(rounds / fewest, 1));
}

namespace {

Index split_k_of(const DotProblem& p, const DotTiles& tiles, const Target& target) {
  constexpr Index kFewestBlocks = 4;  // of k for each of the programs that share it
  return p.split_k ? most_split_k(p.programs(tiles.bm, tiles.bn), p.k, kFewestBlocks * tiles.bk, target) : 1;
}

// Tiles and ways to share k, ranked by the unit's model. A tile may be larger than the problem: the rest of
// it is zeros.
std::vector<DotTiles> tiles_by_rate(const DotProblem& p, const MatrixChoice& by, const Target& target) {
  const tile::TileRate& rate = *by.unit->rate;
  const Index bytes = p.operand_bytes();
  std::vector<RankedTiles> all;
  for (const DotTile& edges : by.operands->tiles_of(p.two_level)) {
    if (!is_usable(edges, *by.unit, p)) continue;
    DotTiles t{edges.rows, edges.columns, by.unit->blocks.row_bytes / bytes};
    // Few rows of a: b streams. Where its columns lie together, a block's rows are as wide as the tile.
    const Index piece = p.b_by_rows ? std::min(t.bn, p.n) * bytes : rate.streamed_bytes;
    const Index most = split_k_of(p, t, target);
    for (t.split_k = 1; t.split_k <= most; ++t.split_k) {
      tile::TensorTiles tiles{.bm = t.bm,
                              .bn = t.bn,
                              .k = ceil_div(p.k, t.split_k),
                              .operand_bytes = bytes,
                              .programs = static_cast<double>(p.programs(t.bm, t.bn) * t.split_k),
                              .group_m = std::min(rate.group_m, ceil_div(p.m, t.bm)),
                              .inside_m = p.m,
                              .inside_n = p.n,
                              .piece_bytes = p.m <= rate.streaming_rows ? piece : 0,
                              .a_lines = p.a_lines,
                              .b_lines = p.b_lines,
                              .two_level = p.two_level};
      if (t.split_k == 1)
        tiles.leaving_cycles = tile::leaving_cycles(rate, rate.instructions_an_op * p.ops_after);
      double us = tile::tensor_tiles_us(tiles, rate, target);
      tiles.pingpong = !by.operands->added_apart && !p.two_level && tile::fits_pingpong(rate, t.bm, t.bn);
      if (tiles.pingpong) us = std::min(us, tile::tensor_tiles_us(tiles, rate, target));
      all.push_back({t, us + split_k_combine_us(p, t.split_k, target)});
    }
  }
  return best_of_each(std::move(all));
}

// Tiles of fixed edges that reach their share of `peak`, by as many programs for one sum as end soonest;
// their time in µs.
RankedTiles shared_out(const DotProblem& p, const DotTile& tile, Index depth, double peak,
                       const Target& target) {
  DotTiles tiles{tile.rows, tile.columns, depth};
  const Index programs = p.programs(tiles.bm, tiles.bn), most = split_k_of(p, tiles, target);
  double best_us = 0;
  for (Index split_k = 1; split_k <= most; ++split_k) {
    const double flops = 2.0 * static_cast<double>(tiles.bm * tiles.bn * ceil_div(p.k, split_k));
    const double waves = static_cast<double>(ceil_div(programs * split_k, Index{target.units}));
    const double us =
        tile::shared_tiles_us(tile, flops, waves, peak, target) + split_k_combine_us(p, split_k, target);
    if (best_us == 0 || us < best_us) tiles.split_k = split_k, best_us = us;
  }
  return {tiles, best_us};
}

// The fastest of tiles whose loops were measured; else the widest of which every unit gets one, which reach
// `share` of `peak`.
std::vector<DotTiles> tiles_by_share(const DotProblem& p, const std::vector<DotTile>& tiles, Index depth,
                                     double peak, double share, const Target& target) {
  std::vector<DotTile> fit;
  for (const DotTile& t : tiles)
    if (p.is_held(t.rows, t.columns)) fit.push_back(t);
  const auto ranked = [&](DotTile t) {
    if (t.share == 0) t.share = share;
    return shared_out(p, t, depth, peak * (p.b_by_k ? t.by_k : 1), target);
  };
  const bool measured = std::any_of(fit.begin(), fit.end(), [](const DotTile& t) { return t.share > 0; });
  if (!measured || target.any_size) {
    const auto filling = std::find_if(fit.begin(), fit.end(), [&](const DotTile& t) {
      return target.any_size || p.programs(t.rows, t.columns) >= target.units;
    });
    return {ranked(filling == fit.end() ? fit.back() : *filling).tiles};
  }
  std::vector<RankedTiles> all;
  all.reserve(fit.size());
  for (const DotTile& t : fit) all.push_back(ranked(t));
  return best_first(all);
}

std::vector<DotTiles> matrix_tiles(const DotProblem& p, const MatrixChoice& by, const Target& target) {
  const Index depth = by.unit->blocks.row_bytes / p.operand_bytes();
  if (target.any_size && p.is_held(by.unit->any_size.rows, by.unit->any_size.columns))
    return {{by.unit->any_size.rows, by.unit->any_size.columns, depth}};
  if (by.unit->rate) return tiles_by_rate(p, by, target);
  return tiles_by_share(p, by.operands->tiles_of(p.two_level), depth,
                        target.matrix_flops_per_s * by.operands->rate, by.unit->share, target);
}

bool fills_vector_tiles(const DotProblem& p, const tile::VectorDots& dots) {
  return p.dtype == DType::f32 && p.in_memory && std::min({p.m, p.n, p.k}) >= dots.fewest &&
         std::any_of(dots.tiles.begin(), dots.tiles.end(),
                     [&](const DotTile& t) { return p.is_held(t.rows, t.columns); });
}

}  // namespace

double vector_share(const DotProblem& p, const Target& target) {
  if (target.packed_dots) return 1;
  const tile::VectorDots& dots = target.vector_dots;
  return fills_vector_tiles(p, dots) ? dots.tiles.front().share : dots.share;
}

std::vector<DotTiles> rank_dot_tiles(const DotProblem& p, const Target& target) {
  if (const MatrixChoice by = matrix_choice(p, target)) return matrix_tiles(p, by, target);
  if (target.packed_dots) return packed_tiles(p, target);
  const tile::VectorDots& dots = target.vector_dots;
  const double peak = target.flops_per_s;
  if (fills_vector_tiles(p, dots)) return tiles_by_share(p, dots.tiles, dots.depth, peak, dots.share, target);
  const auto edge = [&](Index size, bool whole) { return whole ? size : std::min(dots.edge, size); };
  const DotTile tile{.rows = edge(p.m, p.whole_m), .columns = edge(p.n, p.whole_n), .share = dots.share};
  return {shared_out(p, tile, std::min(dots.edge_depth, p.k), peak, target).tiles};
}

}  // namespace tilewright::passes
