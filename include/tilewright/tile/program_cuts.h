// What one program is given of work that no matrix unit takes: rows, columns and elements (RowCuts),
// back-to-back matmuls (B2bBlocks) and products (VectorDots or PackedDots). A backend fills them
// in, fitted to its device; the defaults are small and legal.
#pragma once

#include <tilewright/tile/matrix_unit.h>

#include <array>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// A tile of small tensors.
struct SmallTile {
  Index elements = 0;
  double programs = 0;  // a unit, at most
  friend bool operator==(const SmallTile&, const SmallTile&) = default;
};

struct RowCuts {
  Index elements = 4096;   // of a pointwise program
  Index access_bytes = 0;  // widest accesses of a pointwise program that waits for memory; 0: `elements`
  // A pointwise program of a small tensor has `least_elements` or more: below the widest accesses each unit
  // gets `small_programs` before a program gets more. 0: no tensor is small.
  Index least_elements = 0, small_programs = 4;
  // The same of tensors that have no rows, the smallest first: the first whose `programs` a unit are enough;
  // half of it where an element costs `small_flops` or more. 0 elements: none.
  std::array<SmallTile, 4> small_tiles;
  double small_flops = 16;
  Index turned_edge = 64;       // of square tiles that turn an access around
  Index picked_elements = 64;   // rows picked by an index are blocks from this length on
  Index loop_elements = 4096;   // block of a row that a loop walks
  Index joined_elements = 512;  // short rows are put together to so many elements
  Index joined_columns = 0;     // rows are short up to this length; 0: up to half of `joined_elements`
  Index joined_rows = 1;        // by so many rows at a time, where so many fit
  Index joined_programs = 0;    // programs a unit that putting rows together leaves; 0: any number
  // A row in groups of at most `group_elements` stays on chip with all its groups, up to `grouped_elements`.
  Index group_elements = 0, grouped_elements = 0;

  // Column reductions. `column_bytes` are what the threads of a row read at once: a block is as narrow as
  // that, wider where rows are few, and has `column_round_bytes` at least. 0: `columns` by `column_rows`.
  Index columns = 512, column_rows = 32;
  Index column_bytes = 0, column_round_bytes = 0;
  Index strip_columns = 64;  // of a block with all rows on chip

  // Reductions that several programs share, a second kernel merging their parts.
  Index shared_programs = 64;        // a unit
  double shared_elements = 1 << 16;  // at least: for fewer the second kernel costs more than it saves
  bool shares_outer = false;         // they share an outer variable where several are reduced

  // Column reductions that the programs of a cluster share.
  Index cluster_programs = 3;       // a unit
  Index cluster_threads = 1024;     // of a unit, which keep enough bytes under way
  Index cluster_vectors = 4;        // accesses that a thread has under way
  Index cluster_piece_bytes = 256;  // of a row of a block, at least
  friend bool operator==(const RowCuts&, const RowCuts&) = default;
};

// Blocks of a back-to-back matmul on the ordinary units.
struct B2bBlocks {
  Index edge = 64;    // rows and columns of products that are reduced, or added up, block by block
  Index walked = 64;  // by the loop at a time
  Index rows = 64, columns = 256;  // of the last result
  // More rows, where the loop is at least `wide_loop` long, what it computes fits Target::row_bytes, and
  // every unit still has `wide_programs`. 0: never.
  Index wide_rows = 0, wide_loop = 0, wide_programs = 0;
  Index inner_depth = 256;  // of a product inside the loop, on chip at once
  friend bool operator==(const B2bBlocks&, const B2bBlocks&) = default;
};

// Products by threads that share a tile.
struct VectorDots {
  // Operands of f32 that are blocks of memory, `depth` at a time; `fewest` rows, columns and depth, since
  // smaller products leave most of a tile empty. No tiles: there is no such way.
  std::vector<DotTile> tiles;
  Index fewest = 1, depth = 32;
  // Other products: the edges of their tiles, their depth, and what they reach of Target::flops_per_s.
  Index edge = 64, edge_depth = 16;
  double share = 1;
  // A matmul of at most `sum_rows` rows or columns is written as sums of products, `sums` at most for a
  // thread that holds one-byte operands' widest access. 0: never.
  Index sum_rows = 0, sums = 64;
  friend bool operator==(const VectorDots&, const VectorDots&) = default;
};

// A unit that multiplies packed blocks: whole `rows` and `columns`, whole `step_bytes` of the depth, of which
// a block has `depth_bytes`.
struct PackedUnit {
  Index rows = 1, columns = 1, step_bytes = 1, depth_bytes = 1;
  double speed = 1;  // elements that it multiplies while vectors multiply one
  double share = 1;  // of Target::matrix_flops_per_s that blocks reach
  friend bool operator==(const PackedUnit&, const PackedUnit&) = default;
};

// Products by one thread that packs blocks of both operands into its caches and keeps a few rows of the
// result in registers. Times are cycles of a unit that starts one multiplication of vectors a cycle.
struct PackedDots {
  Index register_rows = 1;    // fewer rows of the left operand read the right one where it stands
  double pack_cycles = 0;     // an element
  double result_cycles = 0;   // an element that is zeroed, stored and loaded again
  double program_cycles = 0;  // the start of a program
  double merge_cycles = 0;    // the start of a second kernel
  Index most_rows = 1, most_columns = 1, depth_bytes = 1;  // of a block
  bool widens = false;                                     // 16-bit operands are multiplied as f32
  DotTile any_size;                                        // for sizes that are not known
  Index any_size_depth = 1;
  // Few rows, or one column, whose other operand streams from memory: so many of its rows a program. A walk
  // along what is summed is long where that lies together, short where it lies across.
  Index streamed_rows = 1, long_walk = 1, short_walk = 1;
  // Few rows, where what is summed lies across: so many columns in whole steps, by so many rows.
  Index across_columns = 1, across_step = 1, across_rows = 1;
  Index shared_depth = 1;           // at least, for each of the programs that share a sum
  std::vector<DType> matrix_types;  // in memory, multiplied at Target::matrix_flops_per_s if that is known
  std::optional<PackedUnit> unit;   // of operands of these types, computed ones, too
  friend bool operator==(const PackedDots&, const PackedDots&) = default;
};

}  // namespace tilewright::tile
#pragma GCC visibility pop
