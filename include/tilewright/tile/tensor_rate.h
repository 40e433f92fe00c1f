// How fast a matrix unit multiplies tiles: what lowering chooses a tile's edges by, and a backend its
// schedules.
#pragma once

#include <tilewright/base/shape.h>
#include <tilewright/tile/target.h>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// Programs of one tile [bm, bn] each, summed over k.
struct TensorTiles {
  Index bm = 128, bn = 128, k = 1;
  Index operand_bytes = 2;  // of an element
  double programs = 1;
  Index group_m = 1;  // programs that run one after another share bn and walk this far along m
  // Rows and columns of the tile inside the problem, 0 for all: the rest are zeros that no memory gives.
  Index inside_m = 0, inside_n = 0;
  // Bytes that lie together in memory, of what streams from there in blocks: the narrower they are, the more
  // rows of the memory are opened for the same bytes. 0: whole rows.
  Index piece_bytes = 0;
  // Cache lines that a row of a block of a, and of b, lies in (BlockRules::lines).
  double a_lines = 1, b_lines = 1;
  double leaving_cycles = 0;    // of a unit, an element: what follows the sum, its store apart
  bool by_copy_engine = false;  // it leaves by the copy engine
  bool two_level = false;  // ordinary instructions add each step's products to the sums of 16-bit operands
  bool pingpong = false;   // two programs at a time: what follows one's sum runs under the other's
};
// Cycles an element of so many instructions on f32 takes.
inline double leaving_cycles(const TileRate& rate, double instructions) {
  return instructions / rate.instructions_per_cycle;
}
// Whether a part of a program's threads has registers for a tile of its own.
bool fits_pingpong(const TileRate& rate, Index bm, Index bn);

// Microseconds of programs of `flops` each, `waves` on every unit one after another, that reach the tile's
// share of `peak` (FLOPs a second of all units).
double shared_tiles_us(const DotTile& tile, double flops, double waves, double peak, const Target& target);

// Microseconds of all programs when each of the target's units works on one at a time.
double tensor_tiles_us(const TensorTiles& tiles, const TileRate& rate, const Target& target);

}  // namespace tilewright::tile
#pragma GCC visibility pop
