// What the passes and the cost model may know about a device.
#pragma once

#include "backends/cuda/machine/limits.h"

#include <tilewright/tile/target.h>

namespace tilewright::cuda {

// Bytes that a kernel's parameters may take on every driver (CUDA C++ Programming Guide, "Function
// Parameters").
inline constexpr Index kArgumentBytes = 4096;

// Rates that the driver does not tell are rules of thumb.
tile::Target target_of(const DeviceLimits& limits, const Arch& arch);

}  // namespace tilewright::cuda
