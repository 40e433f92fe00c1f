// How a group's iteration space is cut into the tiles of a kernel's programs.
#pragma once

#include "passes/nest/loop_nest.h"

#include <tilewright/tile/kernel.h>

namespace tilewright::passes {

// Sums of up to so many blocks are as exact in f32 as those of a block, whose rows come one after another.
inline constexpr Index kManyRounds = 32;

// How the iteration space is cut. Variables that are neither tile axis nor reduced are grid coordinates.
struct TileShape {
  int row = -1, column = -1;  // variables the tile's axes walk; -1: the axis is absent (a row needs a column)
  Index rows = 1, columns = 1;
  bool looped =
      false;  // the reduced tile variable is walked in blocks by a loop (else the tile holds all of it)
  Index split_k = 1;         // looped: programs that share one reduction
  Index split_k_length = 0;  // elements of the shared variable each of them takes; a multiple of the block
  int split_k_variable =
      -1;                   // the reduced variable that they share; -1: the one that the innermost loop walks
  bool combines = false;    // of partial results of `splits` programs the results, and what comes of them
  int depth_variable = -1;  // of a program with a dot: the reduced variable its loop walks
  Index depth = 1;          // elements of that axis; row and column are those of the result
  // The depth of dots inside the loop that is on chip at once: more is a loop of its own; less is filled up
  // with zeros to whole units.
  Index inner_depth = kMostInnerDepth, inner_unit = 1;
  int block_bounds = -1;      // the temporary that says which blocks the loop walks (block_bounds.h)
  bool leaves_masks = false;  // blocks that masks keep as they are get a loop of their own (loop_peeling.h)
  int epilogue_reductions =
      -1;  // the first temporary of parts of epilogue reductions (epilogue_reductions.h)
  tile::DotPrecision precision = tile::DotPrecision::exact;  // of the dot
  bool two_level_accumulation =
      false;                      // each block's product is added to what the loop carries by itself, in f32
  bool accumulate_tiles = false;  // looped: carry whole tiles and reduce once, after the loop
  bool carries_wide = false;      // looped: sums of f32 are carried in f64, so that many blocks round as few
  // The kernel takes any extents: tiles may overhang them, and every axis is one of the grid.
  bool any_size = false;
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

// Whether elements so many apart are read as if they lay side by side: several share what memory gives at
// once.
inline bool lie_close(Index step, DType dtype) {
  constexpr Index kCloseBytes = 16;  // half of the shortest sector
  return step == 1 || step * static_cast<Index>(size_bytes(dtype)) <= kCloseBytes;
}

// The variables that lay out the partial results of a reduction or dot: what stands beside a dot has rows
// only.
std::vector<int> partial_variables(const LoopNest& nest, const TileShape& shape, int expr);
// What a program that shares reductions and dots leaves of each: its value, and of the place of an extreme
// the extreme behind it.
struct SharedPart {
  int expr = -1;
  DType dtype = DType::f32;
  bool extreme = false;
};
std::vector<SharedPart> shared_parts(const LoopNest& nest);

// Programs in the grid.
Index program_count(const LoopNest& nest, const TileShape& shape);

}  // namespace tilewright::passes
