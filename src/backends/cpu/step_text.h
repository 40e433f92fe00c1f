// The steps of a LoopPlan as C++ text.
#pragma once

#include "backends/cpu/kernel_text.h"
#include "backends/cpu/prefetch.h"

namespace tilewright::cpu {

void print_steps(KernelText& k, const std::vector<printer::Step>& steps, const Prefetches& prefetches = {});

}  // namespace tilewright::cpu
