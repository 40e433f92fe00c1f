// Tiles of which a thread keeps one row for all of its rows: sums that a loop carries and that are added up
// over rows behind it.
#pragma once

#include "backends/cuda/layout/layout.h"

#include <set>

namespace tilewright::cuda {

// The tiles that threads keep as one row, by storage. Such a tile begins with its monoid's identity, the loop
// does no more than combine elements with it, and all that follows is its reduction along the rows. So a
// thread may combine its rows in the loop, in registers for one row: the registers of the others are free for
// blocks that are being loaded.
std::set<tile::ValueId> find_folded_rows(const LayoutInput& input, const Layouts& layouts);

// Whether an element loop only begins such tiles or reduces them: it walks one row of a thread.
bool walks_folded_row(const printer::LoopPlan& plan, const printer::ElementLoop& loop,
                      const std::set<tile::ValueId>& folded);

}  // namespace tilewright::cuda
