// Times products of 8-bit floats with scales of blocks, schedule by schedule, as JSON lines.
#pragma once

#include <string>

namespace tilewright::cuda {

// Problems whose name contains `only`.
void bench_scaled(const std::string& path, const std::string& only);

}  // namespace tilewright::cuda
