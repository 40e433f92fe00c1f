// Which dots write their results to the view where these are stored, without a buffer between.
#pragma once

#include "backends/cpu/text/kernel_text.h"

namespace tilewright::cpu {

// A dot's result that is stored as it is: the store, by the result. In the plan the dot takes the place of
// the loop that would copy it.
std::map<tile::ValueId, const tile::Op*> dot_results_in_place(const KernelText& k, printer::LoopPlan& plan);

}  // namespace tilewright::cpu
