// Kernels whose rows have nothing to do with each other: rows that no store writes need not be computed.
#pragma once

#include "backends/cpu/text/access.h"

#include <optional>

namespace tilewright::cpu {

// Where the rows of a kernel's tiles end, if all that it stores are rows that end there and no row of a tile
// depends on another one.
struct RowsApart {
  Index rows;  // of each tile
  AccessBound end;
};
std::optional<RowsApart> rows_apart(const KernelText& k);

}  // namespace tilewright::cpu
