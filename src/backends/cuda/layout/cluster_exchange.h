// What the blocks of a cluster that share a tile's rows tell each other: each block's part of what is reduced
// down the columns, in shared memory that the kernel declares.
#pragma once

#include "backends/cuda/layout/layout.h"

namespace tilewright::cuda {

// Shared memory that a kernel may declare, and what it keeps of it for small arrays.
inline constexpr Index kMostStaticSharedBytes = 48 * 1024, kStaticSharedBytes = 2048;

// A thread's state of a reduction: its value in 32 or 64 bits, and the place of an extreme beside it.
Index reduction_state_bytes(DType dtype, tile::Monoid monoid);

// Bytes of one reduction down the columns of a loop. What runs many times (inside a loop or a condition of
// the kernel, or for one program after another) has two places, used in turn.
Index cluster_column_bytes(const TileFrame& frame, Part part, bool repeated, Index state_bytes);

// Bytes of all of a kernel's; 0 where no cluster shares rows. At most kMostStaticSharedBytes -
// kStaticSharedBytes may be used.
Index cluster_exchange_bytes(const LayoutInput& input, const Layouts& layouts);

}  // namespace tilewright::cuda
