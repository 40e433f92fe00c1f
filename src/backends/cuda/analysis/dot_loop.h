// DotLoop: a tile loop that accumulates dots, taken apart into what a pipelined schedule needs to know: where
// the operands come from, what is computed on them on the way, and which carried tile each dot adds to.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <vector>

namespace tilewright::cuda {

// Operand a or b of a dot, as the loop's body makes it.
struct DotOperand {
  tile::ValueId value = -1;
  std::vector<const tile::Op*> ops;  // the body's tile ops it is made by, loads first to last; scalars apart
  const tile::Op* load = nullptr;  // it is this block of a view and nothing is computed on it; null otherwise
  bool transposed = false;         // the block's two axes are swapped
};

struct Dot {
  const tile::Op* op = nullptr;
  DotOperand a, b;
  int carried = -1;  // position of the accumulator among the loop's carried values
};

struct DotLoop {
  const tile::Op* loop = nullptr;
  std::vector<Dot> dots;  // in program order
  bool only_dots =
      false;  // every tile op of the body makes an operand or is a dot: blocks may be fetched ahead
};

// Null when the body has no dot, has blocks in it, or a dot adds to something else than a carried tile that
// nothing else in the body reads.
std::optional<DotLoop> find_dot_loop(const tile::Kernel& kernel, const tile::Op& loop);

}  // namespace tilewright::cuda
