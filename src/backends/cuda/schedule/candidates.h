// The schedules of a kernel.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// The schedules worth trying, best predicted first; refusals last.
std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PlanOptions& options);

// Predicted microseconds of the first of them, of kernels for `target.arch`; infinite where all are refused.
double predicted_us(const tile::Kernel& kernel, const tile::Target& target);

}  // namespace tilewright::cuda
