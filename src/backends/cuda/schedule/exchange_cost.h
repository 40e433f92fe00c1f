// What threads of a program wait for each other, and what they compute for it.
#pragma once

#include "backends/cuda/layout/layout.h"

namespace tilewright::cuda {

// Sums of a tile's rows, each of which several threads have.
double sums_of_rows(const Layouts& layouts);

// Instructions by which the threads of a block combine what they have of the same columns.
double instructions_down(const Layouts& layouts, int threads);

// Microseconds of one exchange, as a mean of the plan's: by shuffles of a warp, or through shared memory.
double exchange_us_of(const tile::Schedule& schedule, const Layouts& layouts);

struct ScanCost {
  double instructions = 0;  // of a program
  double block_us = 0;      // that it waits for
};

// Scans down the columns, of `scanned` elements of a program: each thread its run of rows, then the runs of
// each column by shuffles and, where several warps share columns, through shared memory; what comes before a
// run is then combined with its rows.
ScanCost scan_cost(double scanned, const Layouts& layouts, int threads);

}  // namespace tilewright::cuda
