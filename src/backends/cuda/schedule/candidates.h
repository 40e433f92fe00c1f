// The schedules of a kernel.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// The schedules worth trying, best predicted first; refusals last.
std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PlanOptions& options);

// What predicts microseconds of the first of them, of kernels for an architecture; infinite where all are
// refused. One for each kind of architecture that schedules differ by: a Target holds no more than a
// function.
tile::KernelTime predictor(const Arch& arch);

}  // namespace tilewright::cuda
