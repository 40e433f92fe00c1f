// Kernels that reduce along the columns of tiles, in loops over rows: what blocks of a cluster share.
#pragma once

#include <tilewright/tile/builder.h>

namespace tilewright::tile::samples {

struct Columns {
  Index rows, columns, block_rows, block_columns;
};
// Column sums of a bf16 matrix: y, half the sum of each column's elements; z, the sum and the sum of the
// squares together.
Kernel column_epilogue_reductions(const Columns& c);
// A reduction for each round of the loop, of an f32 matrix: exchanges are repeated.
Kernel sums_of_rounds(const Columns& c);

}  // namespace tilewright::tile::samples
