// gpu_tests --bench-dots FILE: matmuls under many schedules, one JSON object a line: time, TFLOP/s, and the
// worst error of sampled elements. Set beside cuBLAS by lab/peers/dots.py in the same run.
#pragma once

#include <string>

namespace tilewright::cuda {

// `only`: a part of the problem's name, or "" for all.
void bench_dots(const std::string& path, const std::string& only);

}  // namespace tilewright::cuda
