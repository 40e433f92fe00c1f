// Tile kernel + schedule → CUDA C++ text that reads as one would write it by hand.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/machine/arch.h"

namespace tilewright::cuda {

struct PrintOptions {
  Arch arch;
  Index max_shared_bytes = 227 * 1024;  // a block
};
// Fails with `unsupported` and the reason when the schedule does not fit the kernel or the device.
Result<backends::Source> print_kernel(const tile::Kernel& kernel, const tile::Schedule& schedule,
                                      const PrintOptions& options);

// The parameters of the printed kernel after views and scalars: program counts of the grid axes that the
// kernel's scalars decide, each an i32.
std::vector<int> grid_parameters(const tile::Kernel& kernel);

}  // namespace tilewright::cuda
