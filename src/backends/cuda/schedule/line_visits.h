// How often the accesses of a program's warps visit caches and shared memory.
#pragma once

#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// Cache lines that the warps of a program touch, access by access, and turns in which shared memory answers
// them.
double line_visits(const tile::Kernel& kernel, const CudaPlan& plan);
// Whether the loops over a program's row move narrow elements one by one.
bool moves_singly(const tile::Kernel& kernel, const CudaPlan& plan);

}  // namespace tilewright::cuda
