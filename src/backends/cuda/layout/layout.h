// Layout: which thread holds which elements of a tile.
//
// Every tile is seen as [rows, cols] (rank 1: one row, or one column of a larger tile). The threads of a
// program stand as `groups` row groups of `threads_per_row` threads. Thread t of group g holds
//   rows    r · groups + g                              for r < row_steps
//   columns (c · threads_per_row · cluster + t) · vector + v   for c < col_steps, v < vector
// with t counting through the blocks of a cluster; or, where these share the rows of a tile, g:
//   rows    r · groups · row_blocks + g
// Loops over r, c and v are unrolled: a tile lives in
// registers. The accumulator of tensor cores (RowMap::mma) is the same but for its rows: 4 threads a row and
// warp, vectors of 2, and g counts 8 rows of every 16 in a warp; r alternates between the two halves:
//   rows    r / 2 · 2 · groups + r % 2 · 8 + g / 8 · 16 + g % 8
// Where a kernel scans down the columns, a group holds neighbouring rows (RowMap::runs), so that only what
// each run comes to crosses threads:
//   rows    g · row_steps + r
// Where a row begins anywhere (shifted_row.h) all columns are moved down by less than a vector.
// Values of one axis (a row's sum, a column's weight) are spread as the rows or the columns of a
// tile are, and repeated along the other axis. That is the whole set: blocked tiles and their slices.
#pragma once

#include "backends/cuda/layout/shifted_row.h"
#include "backends/printer/loop_plan.h"
#include "backends/printer/value_range.h"
#include "base/inline_vector.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/schedule.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tilewright::cuda {

inline constexpr int kQuad = 4;  // threads that share a row of an accumulator

enum class RowMap : unsigned char { strided, mma, runs };

struct TileFrame {
  Index rows = 1, cols = 1;
  int groups = 1;
  int threads_per_row = 32;
  int vector = 1;
  int cluster = 1;     // blocks of a cluster that share its columns
  int row_blocks = 1;  // blocks of a cluster that share the tile's rows
  RowMap map = RowMap::strided;
  bool shifted = false;  // its one row begins anywhere
  Index row_steps() const { return ceil_div(rows, row_groups()); }
  Index row_groups() const { return Index{groups} * row_blocks; }
  Index row_threads() const { return Index{threads_per_row} * cluster; }
  Index col_steps() const { return ceil_div(cols + (shifted ? vector - 1 : 0), row_threads() * vector); }
  bool ragged_rows() const { return rows % row_groups() != 0; }
  bool ragged_cols() const { return shifted || cols % (row_threads() * vector) != 0; }
  bool whole_vectors() const { return !shifted && cols % vector == 0; }
  Index elements_per_thread() const { return row_steps() * col_steps() * vector; }
  friend bool operator==(const TileFrame&, const TileFrame&) = default;
};

// The part of its frame that a value or a loop is spread like: all of it, its rows or its columns. `one` is
// the same in every thread.
enum class Part : unsigned char { all, rows, cols, one };
struct ThreadLayout {
  int frame = -1;
  Part part = Part::one;
  friend bool operator==(const ThreadLayout&, const ThreadLayout&) = default;
};

struct Layouts {
  std::vector<TileFrame> frames;
  std::map<const printer::ElementLoop*, ThreadLayout> loops;
  std::map<tile::ValueId, ThreadLayout> buffers;  // by storage
  std::set<tile::ValueId> folded;                 // of these: one row of a thread for all (folded_rows.h)
  std::optional<ShiftedRow> shifted;              // the rows of the frame that is shifted
  int programs_per_block = 1;                     // side by side, each of threads_per_row threads
  bool is_packed() const { return programs_per_block > 1; }
  const TileFrame& frame(ThreadLayout layout) const { return frames[static_cast<std::size_t>(layout.frame)]; }
};

// Whether two places put the same elements into the same registers of the same threads.
bool same_spread(const Layouts& layouts, ThreadLayout a, ThreadLayout b);
// The blocks of a cluster share the rows of a tile, not the columns of one row.
bool shares_rows(const tile::Schedule& schedule);
// Axes longer than 1, in order.
using Axes = InlineVector<int, 2>;
Axes long_axes(const std::vector<Index>& shape);
// The side of the frame along which an axis of a loop lies: 0 down the rows, 1 along the columns; -1 if it
// has one element, or lies in one thread.
int side_of_axis(const printer::ElementLoop& loop, ThreadLayout layout, int axis);

struct LayoutInput {
  const tile::Kernel& kernel;
  const printer::LoopPlan& plan;
  const std::vector<printer::ValueRange>& ranges;
  const tile::Schedule& schedule;
};
// Fails with `unsupported` and the reason when the schedule does not fit the kernel.
Result<Layouts> assign_layouts(const LayoutInput& input);

// The shape that decides about threads: the largest tile of the plan, as rows and columns.
struct MainShape {
  Index rows = 1, cols = 1;
  int access_bytes = 4;  // size of the narrowest element moved along its columns
  Index vector = 1;      // elements an access of 16 bytes may take there
  bool shifted = false;  // the one row begins anywhere in its first vector
};
MainShape main_shape(const tile::Kernel& kernel, const printer::LoopPlan& plan,
                     const std::vector<printer::ValueRange>& ranges);

}  // namespace tilewright::cuda
