// Tile kernel + plan → CUDA C++ text that reads as one would write it by hand.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/plan/plan.h"

namespace tilewright::cuda {

// Whatever is planned can be printed.
backends::Source print_kernel(const tile::Kernel& kernel, const CudaPlan& plan);

}  // namespace tilewright::cuda
