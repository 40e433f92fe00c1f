// Bandwidths of a device, measured in a second or two, for runs on a machine that was never probed.
#pragma once

#include "harness/workload.h"

namespace tilewright::lab {

// Copy, read and write rates of each cache level and of memory, the best over our own kernels' schedules, and
// the f32 multiply-add rate.
Ceilings measure_ceilings(LabDevice& device);

}  // namespace tilewright::lab
