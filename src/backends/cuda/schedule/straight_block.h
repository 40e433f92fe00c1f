// Blocks whose threads load, compute and store once, and wait for nobody.
#pragma once

#include "backends/cuda/schedule/estimate.h"

namespace tilewright::cuda {

// Whether a kernel's blocks are such.
bool is_straight(const KernelWork& work, const Occupancy& occupancy, const tile::Schedule& schedule);

// Microseconds from the start of such a block to its end, in a kernel that has no other. Its warps start one
// after another and share the units; of a thread's elements the first one's instructions wait for one
// another.
double straight_block_us(const KernelWork& work, const Occupancy& occupancy, const CudaPlan& plan);

// Instructions of a program's threads beside those on elements: addresses, bounds, accesses.
double instructions_beside(const KernelWork& work, const Occupancy& occupancy, const CudaPlan& plan);

}  // namespace tilewright::cuda
