// The schedules of a kernel.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// The schedules worth trying, best predicted first; refusals last.
std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PlanOptions& options);

}  // namespace tilewright::cuda
