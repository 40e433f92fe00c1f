// Measurements of the plumbing and of the machine's ceilings, one JSON object a line.
#pragma once

#include "backends/cuda/gpu_tests/gpu.h"

namespace tilewright::cuda {

void measure_host_costs(Gpu& gpu);  // launches, graphs, pool, module load, compile
void measure_copies(Gpu& gpu);      // GB/s (read plus written) of each way of copying, 1 GiB

}  // namespace tilewright::cuda
