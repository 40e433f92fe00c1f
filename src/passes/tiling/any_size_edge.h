// The edge of a tile that serves any extent of its axis near this one.
#pragma once

#include <tilewright/tile/target.h>

#include <algorithm>

namespace tilewright::passes {

// At most `most`, and of few sizes, so that few kernels serve all extents: powers of eight where tiles may
// overhang at no cost, of two where what overhangs is idle.
inline Index any_size_edge(const tile::Target& target, Index extent, Index most) {
  if (extent <= 1) return 1;  // no variable walks it: sizes that are one have kernels of their own
  const Index step = target.ends_anywhere ? 8 : 2;
  Index edge = target.ends_anywhere ? step : 1;
  while (edge < extent && edge < most) edge *= step;
  return 2 * edge >= most ? most : edge;
}

}  // namespace tilewright::passes
