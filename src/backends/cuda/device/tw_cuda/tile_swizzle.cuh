// The order in which programs are taken.
#pragma once

#include "tw_cuda/types.cuh"

namespace tw {

struct GridPoint {
  i32 x, y;  // program ids along the grid's first two axes
};
// Programs in groups of kRows along the second axis (group_m), which counts fastest inside a group: those
// that run at the same time read few different blocks of either operand.
template <int kRows>
TW_DEVICE GridPoint tile_swizzle(i32 program, i32 width, i32 height) {
  const i32 flat = program % (width * height);
  const i32 group_m = flat / (width * kRows), inside = flat - group_m * width * kRows;
  const i32 left = height - group_m * kRows, rows = left < kRows ? left : kRows;
  return {inside / rows, group_m * kRows + inside % rows};
}

// The program that a block takes as its `wave`-th, where programs become shorter from first to last: every
// other wave from its end, so that who had the longest of one has the shortest of the next.
TW_DEVICE i32 serpentine(i32 wave) {
  const i32 blocks = i32(gridDim.x), block = i32(blockIdx.x);
  return wave * blocks + (wave % 2 == 0 ? block : blocks - 1 - block);
}

}  // namespace tw
