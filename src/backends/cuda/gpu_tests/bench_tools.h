// What the benchmarks of products share: random bf16 data on the device, and times of launches.
#pragma once

#include "backends/backend.h"

#include <cstdint>
#include <vector>

namespace tilewright::cuda {

template <class T>
T must_have(Result<T> result) {
  if (!result) throw Error(result.error().message);
  return std::move(*result);
}

struct Matrix {
  std::vector<std::uint16_t> host;  // bf16
  void* device = nullptr;
};
// Standard normal values.
Matrix random_matrix(backends::Backend& backend, Index elements, unsigned seed);
double bf16_value(std::uint16_t bits);

// The time of one launch: over a round of a tenth of a second, and the median of seven of them.
double round_us(backends::Backend& backend, backends::Program& program, const backends::LaunchArgs& args);
double launch_us(backends::Backend& backend, backends::Program& program, const backends::LaunchArgs& args);

}  // namespace tilewright::cuda
