// The steps of a LoopPlan as C++ text.
#pragma once

#include "backends/cpu/loops/row_walks.h"
#include "backends/cpu/text/kernel_text.h"

namespace tilewright::cpu {

// What the kernel's sorts copy at most at one time.
Index argsort_room_bytes(const tile::Kernel& kernel);
void print_steps(KernelText& k, const std::vector<printer::Step>& steps, const RowWalks& walks = {});

}  // namespace tilewright::cpu
