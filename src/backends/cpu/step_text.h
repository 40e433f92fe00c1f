// The steps of a LoopPlan as C++ text.
#pragma once

#include "backends/cpu/kernel_text.h"
#include "backends/cpu/row_walks.h"

namespace tilewright::cpu {

void print_steps(KernelText& k, const std::vector<printer::Step>& steps, const RowWalks& walks = {});

}  // namespace tilewright::cpu
