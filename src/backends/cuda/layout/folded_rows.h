// Tiles of which a thread keeps one row for all of its rows: sums that a loop carries and that are added up
// over rows behind it.
#pragma once

#include "backends/cuda/layout/layout.h"

#include <set>

namespace tilewright::cuda {

// By storage: each begins with its monoid's identity, the loop does no more than combine elements with it,
// and all that follows is its reduction along the rows. So a thread may combine its rows on the way, in
// registers for one of them: the others hold blocks of memory that are under way.
std::set<tile::ValueId> find_folded_rows(const LayoutInput& input, const Layouts& layouts);

// Whether an element loop only begins such tiles or reduces them: it walks one row of a thread.
bool walks_folded_row(const printer::LoopPlan& plan, const printer::ElementLoop& loop,
                      const std::set<tile::ValueId>& folded);

}  // namespace tilewright::cuda
