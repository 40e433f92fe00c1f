// Which tiles are runs of bytes: whole rows, one behind another in memory. All threads of a block copy such a
// tile to shared memory in pieces of 16 bytes, whatever the length of a row is, and read their rows there;
// results leave the same way.
#pragma once

#include "backends/cuda/layout/layout.h"

namespace tilewright::cuda {

inline constexpr Index kRunPiece = 16;  // bytes: one cp.async, one store

struct RowRun {
  const tile::Op* op;  // a load or a store
  const printer::ElementLoop* loop;
  int rows_dim;     // of the view, which the tile's rows walk
  Index rows, row;  // of the tile; elements of a row
  Index at = 0;     // byte of the run's place behind SharedMemory::staged_at
};

// Loads of views that the kernel only reads and stores to views that it only writes, at the kernel's own
// level, of tiles whose run begins at a multiple of 16 bytes. Results take the places of loads that are read
// by the same threads.
struct RowRuns {
  std::vector<RowRun> all;
  Index bytes = 0;  // of shared memory
  bool has(const tile::Op& op) const;
};
RowRuns find_row_runs(const LayoutInput& input, const Layouts& layouts);

}  // namespace tilewright::cuda
