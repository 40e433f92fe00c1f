// What a fusion group must move and compute: the floor by which fusion ranks what it tries.
#pragma once

#include "passes/nest/loop_nest.h"
#include "passes/tiling/dot_shapes.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// Bytes a group must move (each buffer element it touches once) and FLOPs it does; what fusion compares.
struct GroupCost {
  double bytes = 0;
  double memory_s = 0;  // for these, each buffer's at the rate of the cache that may hold it
  double flops = 0;     // apart from the dot's
  double dot_flops = 0;
  DotRate dots;          // at which they are done
  double busy = 1;       // how much of the machine the programs of a kernel with a dot keep at work
  double waiting_s = 0;  // for memory, in loops that have no dot to hide it behind
  int launches = 1;
  double seconds(const tile::Target& target) const;
  // Adds bytes that move, at the rate of a buffer of this size.
  void move(double moved, double buffer_bytes, const tile::Target& target) {
    bytes += moved;
    memory_s += moved / target.bytes_per_s(buffer_bytes);
  }
};
// What a value takes in memory.
double bytes_of(const ir::Type& type);

// The nest of a group as its views were composed, the form of it that is emitted, and that one's tiles.
struct CutProgram {
  const LoopNest& nest;
  const LoopNest& form;
  const TileShape& tiles;  // what has no dot may be priced before it is cut
};
// The tiles say how often what a dot's operands are made of is computed again.
GroupCost group_cost(const ir::Graph& graph, const CutProgram& cut, const tile::Target& target);

}  // namespace tilewright::passes
