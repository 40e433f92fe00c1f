// gpu_tests --bench-kernels FILE: the lab's workloads as hand-written tile kernels under several schedules,
// one JSON object a line: what the time model predicts and what the device does.
#pragma once

#include <string>

namespace tilewright::cuda {

// `only`: a part of the kernel's name, or "" for all; or a file of tile IR, whose kernel takes no scalars.
void bench_kernels(const std::string& path, const std::string& only);

}  // namespace tilewright::cuda
