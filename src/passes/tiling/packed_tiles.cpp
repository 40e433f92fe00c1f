// Edges of blocks are chosen by the cycles of packing, multiplying and storing; those of products of few rows
// by the bytes that stream past.
#include "passes/tiling/packed_tiles.h"

#include "passes/tiling/any_size_edge.h"
#include "passes/tiling/ranked_tiles.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

// Numbers of parts that are tried for an axis, from the fewest on, so that ranking the tiles stays cheap: of
// more parts edges differ little. Chosen, not measured.
constexpr Index kMostPartsTried = 32;

// Units that blocks have whole numbers of: rows of a large operand that are read side by side where the other
// one has few, and elements of depth, as many as the longest vectors have of f32.
constexpr Index kRowsInFlight = 4, kDepthUnit = 16;

// Blocks of about `most`, all alike up to rounding to whole `unit`s.
Index even_block(Index size, Index most, Index unit) {
  const Index parts = std::max<Index>((size + most / 2) / most, 1);
  return std::min(round_up(ceil_div(size, parts), unit), size);
}

class PackedTiles {
 public:
  PackedTiles(const DotProblem& problem, const tile::Target& target)
      : p_(problem), target_(target), cuts_(*target.packed_dots) {}

  std::vector<DotTiles> run() const {
    if (target_.any_size)
      return {{any_size_edge(target_, p_.m, cuts_.any_size.rows),
               any_size_edge(target_, p_.n, cuts_.any_size.columns),
               any_size_edge(target_, p_.k, cuts_.any_size_depth)}};
    if (p_.n == 1) return {one_column()};
    if (p_.m < cuts_.register_rows && !p_.whole_n) return {few_rows()};
    return blocks();
  }

 private:
  // Fewer blocks than units: units share what they sum, if it is long.
  DotTiles shared(DotTiles tiles) const {
    const Index blocks = p_.programs(tiles.bm, tiles.bn);
    if (p_.split_k && blocks < target_.units)
      tiles.split_k =
          std::clamp<Index>(target_.units / blocks, 1, std::max<Index>(p_.k / cuts_.shared_depth, 1));
    return tiles;
  }

  // Few rows (or a column): the large operand streams from memory, so only its order and its share per unit
  // matter.
  DotTiles few_rows() const {
    const Index columns = p_.batch >= target_.units ? p_.n : ceil_div(p_.n, Index{target_.units});
    if (p_.b_by_k)
      return shared({p_.m, even_block(columns, cuts_.streamed_rows, kRowsInFlight),
                     even_block(p_.k, cuts_.long_walk, kDepthUnit)});
    const Index across = round_up(even_block(columns, cuts_.across_columns, 1), cuts_.across_step);
    return shared({p_.m, std::min(across, p_.n), std::min(cuts_.across_rows, p_.k)});
  }
  DotTiles one_column() const {
    const Index rows = p_.batch >= target_.units ? p_.m : ceil_div(p_.m, Index{target_.units});
    const Index depth = p_.by_k ? cuts_.long_walk : cuts_.short_walk;
    return shared(
        {even_block(rows, cuts_.streamed_rows, kRowsInFlight), 1, even_block(p_.k, depth, kDepthUnit)});
  }

  // What multiplies blocks of the problem's operands, where vectors do not.
  const tile::PackedUnit* unit() const {
    const std::vector<DType>& types = cuts_.matrix_types;
    return cuts_.unit && std::find(types.begin(), types.end(), p_.dtype) != types.end() ? &*cuts_.unit
                                                                                        : nullptr;
  }

  double multiply_cycles(Index bm, Index bn, double depth, Index lanes) const {
    const double vectors = depth / static_cast<double>(lanes) * static_cast<double>(p_.operand_bytes()) / 4;
    if (const tile::PackedUnit* by = unit())
      return static_cast<double>(round_up(bm, by->rows) * round_up(bn, by->columns)) * vectors / by->speed;
    return static_cast<double>(bm * round_up(bn, lanes)) * vectors;
  }

  double cycles(Index bm, Index bn, Index split_k, Index lanes) const {
    const Index programs = p_.programs(bm, bn) * split_k;
    const double rows = static_cast<double>(bm), columns = static_cast<double>(round_up(bn, lanes)),
                 depth = static_cast<double>(ceil_div(p_.k, split_k)),
                 packed = static_cast<double>(p_.operand_bytes()) / 4;
    const double multiply = multiply_cycles(bm, bn, depth, lanes);
    const double pack = cuts_.pack_cycles * (rows + columns) * depth * packed;
    const double all = static_cast<double>(ceil_div(programs, Index{target_.units})) *
                       (multiply + pack + cuts_.result_cycles * rows * columns + cuts_.program_cycles);
    const double merge =
        split_k == 1
            ? 0
            : cuts_.merge_cycles +
                  cuts_.result_cycles * static_cast<double>(split_k * p_.batch * p_.m * p_.n) / target_.units;
    return all + merge;
  }

  // What even parts of an axis become in whole units, the longest first.
  static std::vector<Index> edges(Index size, Index most, Index unit) {
    std::vector<Index> out;
    const Index fewest = ceil_div(size, most);
    for (Index parts = fewest; parts < fewest + kMostPartsTried && parts <= size; ++parts) {
      const Index edge = std::min(round_up(ceil_div(size, parts), unit), size);
      if (out.empty() || edge != out.back()) out.push_back(edge);
    }
    return out;
  }

  std::vector<DotTiles> blocks() const {
    const Index lanes = target_.vector_bytes / 4, bytes = p_.operand_bytes();
    const bool widened = bytes == 2 && cuts_.widens;
    const tile::PackedUnit* by = unit();
    const Index row_unit = by ? by->rows : cuts_.register_rows, column_unit = by ? by->columns : lanes;
    const Index bk = by ? even_block(p_.k, by->depth_bytes / bytes, by->step_bytes / bytes)
                        : even_block(p_.k, cuts_.depth_bytes / (widened ? 4 : bytes), kDepthUnit);
    const std::vector<Index> rows = edges(p_.m, cuts_.most_rows, row_unit),
                             columns = edges(p_.n, cuts_.most_columns, column_unit);
    const Index most_split_k = p_.split_k ? std::min(Index{target_.units}, p_.k / bk) : 1;
    std::vector<RankedTiles> all;
    for (const Index bm : rows)
      for (const Index bn : columns)
        for (Index split_k = 1; p_.is_held(bm, bn) && split_k <= most_split_k; ++split_k)
          all.push_back({{bm, bn, bk, split_k}, cycles(bm, bn, split_k, lanes)});
    return best_first(all);
  }

  const DotProblem& p_;
  const tile::Target& target_;
  const tile::PackedDots& cuts_;
};

}  // namespace

std::vector<DotTiles> packed_tiles(const DotProblem& problem, const tile::Target& target) {
  return PackedTiles(problem, target).run();
}

}  // namespace tilewright::passes
