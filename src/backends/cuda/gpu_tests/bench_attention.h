// gpu_tests --bench-attention FILE: attention under many schedules, one JSON object a line: time, TFLOP/s (a
// causal square counts half), and the worst error of sampled rows.
#pragma once

#include <string>

namespace tilewright::cuda {

// `only`: a part of the problem's name, or "" for all.
void bench_attention(const std::string& path, const std::string& only);

}  // namespace tilewright::cuda
