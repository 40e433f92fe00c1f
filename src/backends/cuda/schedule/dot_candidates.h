// The schedules worth trying for a kernel whose work is a loop of one dot.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/plan/plan.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::cuda {

// Best predicted first. Where tensor cores cannot run the kernel's dots, one refused candidate a unit says
// why; a kernel without dots has none.
std::vector<backends::Candidate> dot_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                const PlanOptions& options);

}  // namespace tilewright::cuda
