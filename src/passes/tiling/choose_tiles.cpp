// Tile shapes from strides, extents and what the target keeps on chip.
#include "passes/tiling/choose_tiles.h"

#include "passes/tiling/any_size_edge.h"
#include "passes/tiling/dot_shapes.h"
#include "passes/tiling/group_cost.h"
#include "passes/tiling/split_k_b2b.h"

#include <tilewright/tile/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace tilewright::passes {

namespace {

constexpr Index kManyRows = 16;     // of a program: their bytes are a multiple of 16 in any dtype
constexpr Index kShortBlock = 256;  // of rows on a target that keeps none: most lengths are made of these
// A byte that is stored counts as so many loaded ones where a column axis is chosen: a store that is not
// coalesced costs whole lines both ways. Chosen, not measured.
constexpr double kStoredByte = 1.5;
// Fewest programs of each unit beside strips of columns wider than the least. Chosen, not measured.
constexpr double kFewestStripsOfUnit = 4;
// Fewest units, as a share, that rows over clusters must keep busy. Chosen, not measured.
constexpr double kFewestBusyUnits = 0.75;
// Threads that such clusters may have, as a share of cluster_threads for each unit. Chosen, not measured.
constexpr double kMostClusterThreads = 1.25;

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target)
      : graph_(graph), nest_(nest), target_(target), cuts_(target.rows) {}

  TileShape run() {
    if (nest_.extents.empty()) return {};
    const std::vector<int> reduced = nest_.reduced_variables();
    return reduced.empty() ? pointwise() : reduction(reduced);
  }

 private:
  // An empty axis is walked by tiles of one element, none of which is inside.
  Index extent(int v) const { return std::max<Index>(nest_.extents[at(v)], 1); }
  // Elements of a tile along v, `most` at most.
  Index edge(int v, Index most) const {
    return target_.any_size ? any_size_edge(target_, extent(v), most) : std::min(extent(v), most);
  }
  // Rows beside columns that are `wanted` elements in all.
  Index rows_beside(int row, Index columns, Index wanted) const {
    const Index rows = std::max<Index>(wanted / columns, 1);
    return target_.any_size ? rows : std::min(rows, extent(row));
  }
  // Whether one thread adds up the blocks of a loop: it carries long sums in f64.
  bool accumulates_in_turn() const { return !target_.shares_tiles(); }

  // Elements moved with unit stride along v, over all loads and stores: the more, the better v is as the
  // column axis.
  double contiguity(int v) const {
    const auto bytes_along = [&](const IndexExpr& e, DType dtype) {
      return std::abs(e.factor(v)) == 1 ? touched(e, nest_) * static_cast<double>(size_bytes(dtype)) : 0.0;
    };
    double weight = 0, masked = 0;
    for (const Expr& s : nest_.exprs) {
      if (s.kind != Expr::Kind::load) continue;
      const double bytes = bytes_along(s.offset, s.dtype);
      if (s.mask < 0)
        weight += bytes;
      else
        masked = std::max(masked, bytes);
    }
    // The parts of a concat are each read for a part of the result: all of them are one tensor.
    weight += masked;
    for (const ProgramOutput& o : nest_.outputs)
      weight += kStoredByte * bytes_along(o.offset, o.node >= 0 ? graph_.type(o.node).dtype : DType::f32);
    return weight;
  }

  int best_column(const std::vector<int>& among) const {
    int best = among.back();
    double most = contiguity(best);
    for (int v : among)
      if (const double c = contiguity(v); c > most) {
        best = v;
        most = c;
      }
    return best;
  }

  // The variable along which some full-size load lies closest, where the column walks farther.
  int turned_variable(int column) const {
    for (const Expr& s : nest_.exprs) {
      if (s.kind != Expr::Kind::load || !s.offset.is_affine()) continue;
      int closest = -1;
      Index least = std::abs(s.offset.factor(column));
      for (int v : nest_.parallel_variables()) {
        const Index step = std::abs(s.offset.factor(v));
        if (step > 0 && step < least && lie_close(step, s.dtype) && extent(v) >= 8) closest = v, least = step;
      }
      if (closest >= 0) return closest;
    }
    return -1;
  }

  // A gather whose index is the same along the column: with one row per tile it is a block load.
  bool picks_rows(int column) const {
    return extent(column) >= cuts_.picked_elements &&
           std::any_of(nest_.exprs.begin(), nest_.exprs.end(), [&](const Expr& s) {
             return s.dynamic.size() == 1 && std::abs(s.offset.factor(column)) == 1;
           });
  }

  // Bytes of the widest element read or written at full size: indices of picked rows, and what lies along
  // some of the axes only, are no such accesses.
  Index widest_access() const {
    Index widest = 1;
    for (const Expr& s : nest_.exprs)
      if (s.kind == Expr::Kind::load && s.node >= 0 && 2 * touched(s.offset, nest_) > parallel_points())
        widest = std::max(widest, static_cast<Index>(size_bytes(s.dtype)));
    for (const ProgramOutput& o : nest_.outputs)
      if (o.node >= 0) widest = std::max(widest, static_cast<Index>(size_bytes(graph_.type(o.node).dtype)));
    return widest;
  }

  // Bytes of an element of the load that reads most elements.
  Index main_access() const {
    Index bytes = 4;
    double most = 0;
    for (const Expr& s : nest_.exprs) {
      if (s.kind != Expr::Kind::load) continue;
      const double elements = touched(s.offset, nest_);
      if (elements > most) most = elements, bytes = static_cast<Index>(size_bytes(s.dtype));
    }
    return bytes;
  }

  // The outer neighbour of the column: the next variable outwards that is parallel.
  int outer_neighbour(int column) const {
    int best = -1;
    for (int v : nest_.parallel_variables())
      if (v != column && (best < 0 || (v < column && v > best) || (best > column && v < column))) best = v;
    return best;
  }

  // Arithmetic takes longer than memory: more elements to a thread, for chains of instructions that overlap.
  bool is_compute_bound(const GroupCost& cost) const {
    return cost.flops / target_.flops_per_s > cost.bytes / target_.memory_bytes_per_s;
  }

  // Elements of a pointwise program, `most` where the tensor gives every unit some of these. `flops`: of all
  // programs.
  Index pointwise_elements(Index most, double flops) const {
    if (cuts_.least_elements == 0) return most;
    const double units = target_.units, points = parallel_points();
    if (nest_.parallel_variables().size() == 1)
      for (const tile::SmallTile& small : cuts_.small_tiles)
        if (points <= static_cast<double>(small.elements) * units * small.programs)
          return flops >= cuts_.small_flops * points
                     ? std::max(small.elements / 2, cuts_.small_tiles[0].elements)
                     : small.elements;
    const double share = points / units / static_cast<double>(cuts_.small_programs);
    Index elements = most;
    while (elements / 2 >= cuts_.least_elements && static_cast<double>(elements) > share) elements /= 2;
    return elements;
  }

  // `most`, or a half or a quarter of it, of which the columns fill seven eighths of their tiles: of 768
  // columns, 512 at most, three tiles of 256.
  Index filled_columns(int column, Index most) const {
    const Index least = std::max<Index>(1, cuts_.access_bytes / 4 / widest_access());
    for (Index columns = most; columns >= least; columns /= 2)
      if (7 * round_up(extent(column), columns) <= 8 * extent(column))
        return std::min(columns, extent(column));
    return std::min(most, extent(column));
  }

  TileShape pointwise() const {
    const std::vector<int> parallel = nest_.parallel_variables();
    TileShape t;
    t.column = best_column(parallel);
    const bool asks = cuts_.access_bytes > 0 || cuts_.least_elements > 0;
    const GroupCost cost = asks ? group_cost(graph_, {nest_, nest_, {}}, target_) : GroupCost{};
    const bool one_access = cuts_.access_bytes > 0 && !is_compute_bound(cost);
    const Index wanted =
        pointwise_elements(one_access ? cuts_.access_bytes / widest_access() : cuts_.elements, cost.flops);
    // Turning a block around takes two passes through shared memory: a tensor that has less than a quarter of
    // a block for each unit lies in the cache, which gives single elements as fast.
    const Index block = cuts_.turned_edge * cuts_.turned_edge;
    const bool small =
        cuts_.least_elements > 0 && 4 * parallel_points() <= static_cast<double>(target_.units * block);
    const int transposed = small ? -1 : turned_variable(t.column);
    if (transposed >= 0) {
      t.row = transposed;
      t.rows = edge(transposed, cuts_.turned_edge);
      t.columns = edge(t.column, cuts_.turned_edge);
      // What one thread turns lies in its own cache: beside few columns more rows make a whole tile.
      if (!target_.shares_tiles() && !target_.any_size && 2 * t.columns <= cuts_.turned_edge)
        t.rows = edge(transposed, block / t.columns);
      return t;
    }
    t.columns = target_.any_size && parallel.size() == 1 ? wanted : edge(t.column, wanted);
    if (one_access && !target_.any_size && 2 * extent(t.column) > wanted)
      t.columns = filled_columns(t.column, wanted);
    if (t.columns * 2 <= wanted && parallel.size() > 1 && !picks_rows(t.column)) {
      t.row = outer_neighbour(t.column);
      t.rows = rows_beside(t.row, t.columns, wanted);
      if (t.rows == 1) t.row = -1;
    }
    return t;
  }

  // f32 bytes per element that a program keeps of a row: one value, computed in f32. A sort is never cut
  // (graph/long_sorts.h): the row is taken whole, if no device could. Nor is a scan (graph/long_scans.h), but
  // where one thread walks rows of any length block by block (emit/emit_stores.cpp).
  bool fits(Index elements) const {
    const bool walks = target_.row_bytes == 0 && !target_.shares_tiles() && nest_.carries_scans();
    return takes_rows() && !walks ? elements <= tile::kMaxTileElements : elements * 4 <= target_.row_bytes;
  }

  bool takes_rows() const {
    return std::any_of(nest_.exprs.begin(), nest_.exprs.end(),
                       [](const Expr& s) { return takes_whole_row(s); });
  }

  bool finds_places() const {
    return std::any_of(nest_.exprs.begin(), nest_.exprs.end(),
                       [](const Expr& s) { return s.kind == Expr::Kind::reduce && finds_place(s.monoid); });
  }

  TileShape reduction(const std::vector<int>& reduced) const {
    const std::vector<int> parallel = nest_.parallel_variables();
    std::vector<int> all = parallel;
    all.insert(all.end(), reduced.begin(), reduced.end());
    int column = best_column(all);
    if (const auto both = whole_groups(column, reduced)) return *both;
    const bool along_row = nest_.reduced[at(column)];
    TileShape t =
        along_row ? row_reduction(column, reduced.size() > 1, parallel) : column_reduction(column, reduced);
    if (t.looped && !share_in_clusters(t, reduced)) split(t, reduced);
    t.carries_wide =
        t.looped && accumulates_in_turn() && (target_.any_size || rounds(t, reduced) > double{kManyRounds});
    return t;
  }

  // Blocks that a program walks one after another.
  double rounds(const TileShape& t, const std::vector<int>& reduced) const {
    double all = 1;
    for (int u : reduced) {
      const Index block = u == t.column ? t.columns : u == t.row ? t.rows : 1;
      all *= static_cast<double>(ceil_div(extent(u), block));
    }
    return all / static_cast<double>(t.split_k);
  }

  // Rows that scales cut into groups, shorter than the threads of a program read at once: all groups of a row
  // on chip, a row of the tile each. So are reductions over two variables that depend on each other.
  std::optional<TileShape> whole_groups(int column, const std::vector<int>& reduced) const {
    if (reduced.size() != 2 || !nest_.reduced[at(column)] || takes_rows()) return std::nullopt;
    const int groups = reduced[reduced[0] == column ? 1 : 0];
    const Index elements = extent(column) * extent(groups);
    const bool few = extent(column) <= cuts_.group_elements && elements <= cuts_.grouped_elements;
    if (!fits(elements) || !(few || nest_.held)) return std::nullopt;
    return TileShape{.row = groups, .column = column, .rows = extent(groups), .columns = extent(column)};
  }

  // Rows that a program's threads compute two or four at a time, with none left over for a turn of its own;
  // of many the power of two beside them, which any number of threads divides, and whose bytes any vector
  // does.
  static Index side_by_side(Index rows, Index most) {
    if (rows < kManyRows) return rows < 4 ? std::min<Index>(rows, 2) : rows / 4 * 4;
    const auto floor = [](Index n) {
      return static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(n)));
    };
    return std::min(floor(rows * 99 / 70), floor(most));  // sqrt(2)
  }

  TileShape row_reduction(int column, bool several, const std::vector<int>& parallel) const {
    TileShape t;
    t.column = column;
    t.looped = several || !fits(extent(column));
    if (t.looped) {
      t.columns = edge(column, target_.row_bytes > 0 ? cuts_.loop_elements : kShortBlock);
      t.accumulate_tiles = target_.shares_tiles();
      return t;
    }
    t.columns = extent(column);
    // Short rows: several to a program.
    const Index wanted = cuts_.joined_elements;
    const bool is_short =
        cuts_.joined_columns > 0 ? t.columns <= cuts_.joined_columns : t.columns * 2 <= wanted;
    if (!parallel.empty() && is_short && !picks_rows(t.column)) {
      t.row = parallel.back();
      Index rows = rows_beside(t.row, t.columns, wanted), most = tile::kMaxTileElements;
      if (cuts_.joined_programs > 0)
        most = std::max<Index>(1, parallel_points() / (target_.units * cuts_.joined_programs));
      rows = std::min(rows, most);
      if (target_.shares_tiles()) rows = side_by_side(rows, most);
      if (rows > cuts_.joined_rows) rows = rows / cuts_.joined_rows * cuts_.joined_rows;
      t.rows = rows;
      if (rows == 1) t.row = -1, t.rows = 1;
    }
    return t;
  }

  TileShape column_reduction(int column, const std::vector<int>& reduced) const {
    TileShape t;
    t.column = column;
    t.row = reduced.back();
    t.columns = edge(column, column_width(extent(t.row)));
    const bool dependent = nest_.levels() > 1 || nest_.stores_reduced_values() || takes_rows();
    const bool holds_columns = takes_rows() || (finds_places() && !dependent && holds_sector(t.row));
    if (holds_columns && target_.shares_tiles() && reduced.size() == 1) return whole_columns(t);
    if (dependent && reduced.size() == 1) {
      // The whole reduced axis on chip, over a strip of columns: the widest that fits, of a sector at least.
      t.rows = extent(t.row);
      t.columns = std::min(extent(column), cuts_.strip_columns);
      const Index sector = takes_rows() ? 1 : std::max<Index>(1, target_.sector_bytes / main_access());
      for (const Index least = std::min(t.columns, sector); t.columns >= least; t.columns /= 2)
        if (fits(t.rows * t.columns)) return t;
      t.columns = edge(column, column_width(extent(t.row)));
    }
    t.looped = true;
    t.rows = edge(t.row, column_rows(t.columns));
    t.accumulate_tiles = target_.shares_tiles();
    return t;
  }

  // A sector of each row of a column, in the registers of one block.
  bool holds_sector(int row) const {
    return extent(row) * target_.sector_bytes <= target_.held_elements(main_access()) * main_access();
  }

  // The whole axis that is scanned, or walked for the place of an extreme (one comparison an element, where a
  // loop carries both from block to block), in the registers of one block, a strip of columns wide: as wide
  // as a few rows ask for, as narrow as many rows do, and narrower, too, where strips are too few for the
  // machine. Down to a sector they read no more for it; of strips so few that units would have none, half an
  // access.
  TileShape whole_columns(TileShape t) const {
    const Index held = held_columns();
    const Index sector = std::max<Index>(1, target_.sector_bytes / main_access()),
                least = std::max<Index>(1, target_.vector_bytes / 2 / main_access());
    t.rows = extent(t.row);
    t.columns = cuts_.strip_columns;
    while (t.columns < extent(t.column) && t.columns * t.rows < cuts_.joined_elements) t.columns *= 2;
    t.columns = std::min(t.columns, extent(t.column));
    const auto narrow = [&] {
      t.columns = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(t.columns - 1)));
    };
    while (t.columns > 1 && t.rows * t.columns > held) narrow();
    const auto programs_are_few = [&](Index wanted) {
      return t.rows * t.columns > cuts_.joined_elements / 4 && program_count(nest_, t) < wanted;
    };
    while (t.columns > sector && (2 * t.rows * t.columns > held || programs_are_few(2 * target_.units)))
      narrow();
    while (t.columns > least && programs_are_few(target_.units)) narrow();
    return t;
  }

  // Elements of such a strip. What is sorted lies in the memory that threads share, with i32 positions; half
  // of that memory is for another program.
  Index held_columns() const {
    Index held = target_.held_elements(main_access());
    for (const Expr& s : nest_.exprs)
      if (s.kind == Expr::Kind::argsort) {
        const auto key = static_cast<Index>(size_bytes(compute_dtype(nest_.exprs[at(s.operands[0])].dtype)));
        held = std::min(held, target_.shared_bytes / 2 / (key + 4));
      }
    return held;
  }

  // Columns of a strip: what the threads of a row read at once; more where there are few rows, while every
  // unit has kFewestStripsOfUnit programs.
  Index column_width(Index rows) const {
    if (cuts_.column_bytes == 0) return cuts_.columns;
    const Index least = cuts_.column_bytes / main_access();
    const auto shared = static_cast<Index>(parallel_points() / (kFewestStripsOfUnit * target_.units));
    return std::clamp(std::min(shared, cuts_.elements / std::max<Index>(rows, 1)) / least * least, least,
                      cuts_.elements);
  }

  // Reductions carry a tile each from block to block; of sums, and of extremes of floats, a thread carries
  // one row.
  Index column_rows(Index columns) const {
    if (cuts_.column_bytes == 0) return cuts_.column_rows;
    Index carried = 0;
    for (const Expr& s : nest_.exprs)
      if (s.kind == Expr::Kind::reduce && !is_folded(s)) carried += finds_place(s.monoid) ? 2 : 1;
    const Index elements = std::max(cuts_.elements, cuts_.column_round_bytes / main_access());
    return std::max<Index>(elements / columns / std::max<Index>(carried, 1), 1);
  }

  // A thread carries one row of it from block to block.
  static bool is_folded(const Expr& s) {
    const bool extreme = s.monoid == tile::Monoid::max || s.monoid == tile::Monoid::min;
    return s.monoid == tile::Monoid::sum || (extreme && is_float(s.dtype));
  }

  // Too few programs for the machine, but enough if those of a cluster share each tile's rows: a tile is then
  // what all of them take in one round, and they add up what they have by themselves.
  bool share_in_clusters(TileShape& t, const std::vector<int>& reduced) const {
    if (target_.max_cluster < 2 || reduced.size() != 1 || t.row != reduced[0]) return false;
    if (nest_.levels() != 1 || nest_.stores_along_reduced() || target_.any_size) return false;
    const auto not_folded = [](const Expr& s) { return s.kind == Expr::Kind::reduce && !is_folded(s); };
    if (std::any_of(nest_.exprs.begin(), nest_.exprs.end(), not_folded)) return false;
    TileShape shared = t;
    const auto blocks = [&](Index cluster) { return program_count(nest_, shared) * cluster; };
    const Index many = cuts_.cluster_programs * target_.units;
    if (2 * blocks(1) > many) return false;
    while (blocks(target_.max_cluster) < many && shared.columns * main_access() > cuts_.cluster_piece_bytes)
      shared.columns /= 2;
    if (static_cast<double>(blocks(target_.max_cluster)) < kFewestBusyUnits * target_.units) return false;
    Index cluster = 2;
    while (cluster < target_.max_cluster && blocks(cluster) < many) cluster *= 2;
    const double most = kMostClusterThreads * static_cast<double>(cuts_.cluster_threads * target_.units);
    Index threads = target_.max_threads;
    while (static_cast<double>(threads * blocks(cluster)) > most) threads /= 2;
    const Index vectors = ceil_div(shared.columns * main_access(), Index{target_.vector_bytes});
    shared.rows = cuts_.cluster_vectors * std::max<Index>(threads / vectors, 1) * cluster;
    if (extent(t.row) < shared.rows) return false;
    t = shared;
    return true;
  }

  double parallel_points() const {
    double points = 1;
    for (int v : nest_.parallel_variables()) points *= static_cast<double>(extent(v));
    return points;
  }

  // Too few programs for the machine: several of them share a reduction and a second kernel merges their
  // partials.
  void split(TileShape& t, const std::vector<int>& reduced) const {
    if (nest_.levels() != 1 || nest_.stores_along_reduced()) return;
    int v = nest_.reduced[at(t.column)] ? t.column : t.row;
    Index block = v == t.column ? t.columns : t.rows;
    double work = 1;
    for (int u : reduced) work *= static_cast<double>(extent(u));
    const Index programs = program_count(nest_, t);
    const Index wanted = target_.units * cuts_.shared_programs;
    if (programs * 2 > wanted || work * parallel_points() < cuts_.shared_elements) return;
    const Index most = ceil_div(wanted, programs);
    // An outer variable is cut where it has as many parts: what its rounds share, as a group's scale,
    // is read by one program then, whose inner loop walks far.
    const auto outer = std::find_if(reduced.begin(), reduced.end(), [&](int u) {
      return cuts_.shares_outer && u != v && extent(u) >= std::min(most, ceil_div(extent(v), block));
    });
    if (outer != reduced.end()) v = *outer, block = 1;
    const Index length = extent(v), split_k = std::min(most, ceil_div(length, block));
    if (split_k < 2) return;
    if (outer != reduced.end()) t.split_k_variable = v;
    t.split_k_length = round_up(ceil_div(length, split_k), block);
    t.split_k = ceil_div(length, t.split_k_length);
    if (t.split_k < 2) t.split_k = 1;
  }

  const ir::Graph& graph_;
  const LoopNest& nest_;
  const tile::Target& target_;
  const tile::RowCuts& cuts_;
};

// The shape with what is decided after it: the loop shared among programs, and kernels for any size.
TileShape finished(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target,
                   TileShape shape) {
  if (nest.has_dots()) shape = split_k_b2b(graph, nest, target, shape);
  shape.any_size = target.any_size && target.ends_anywhere;
  return shape;
}

}  // namespace

std::vector<TileShape> rank_tiles(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  if (!nest.has_dots()) return {choose_tiles(graph, nest, target)};
  std::vector<TileShape> shapes = rank_dot_shapes(nest, target);
  for (TileShape& shape : shapes) shape = finished(graph, nest, target, shape);
  return shapes;
}

TileShape choose_tiles(const ir::Graph& graph, const LoopNest& nest, const tile::Target& target) {
  return finished(graph, nest, target,
                  nest.has_dots() ? choose_dot_shape(nest, target) : Chooser(graph, nest, target).run());
}

}  // namespace tilewright::passes
