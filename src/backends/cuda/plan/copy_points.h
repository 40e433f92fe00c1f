// The points at which rounds of back-to-back dots wait for blocks that the threads copy ahead.
#pragma once

#include "backends/cuda/analysis/b2b_matmul.h"
#include "backends/printer/loop_plan.h"

#include <utility>
#include <vector>

namespace tilewright::cuda {

struct CopyPoint {
  const B2bDot* dot = nullptr;                   // before which it stands
  int pending = 0;                               // groups of copies that need not be there yet
  std::vector<std::pair<int, int>> copies = {};  // blocks that are asked for, so many rounds ahead
};

// The points of a round at which it waits for blocks and all threads meet, so that what was read before may
// be overwritten. With several stages that is its beginning. With one, it is each dot that reads a block
// first: one block is copied while the other is multiplied.
Result<std::vector<CopyPoint>> find_copy_points(const B2bMatmul& b2b, const printer::Step& loop, int stages);

}  // namespace tilewright::cuda
