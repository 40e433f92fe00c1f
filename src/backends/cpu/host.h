// The machine that this process runs on, from /sys and CPUID: what tile::Target says about a CPU.
#pragma once

#include "backends/cpu/isa.h"

#include <tilewright/tile/target.h>

namespace tilewright::cpu {

// `threads` is how many cores kernels will run on.
tile::Target host_tile_target(Isa isa, int threads);

}  // namespace tilewright::cpu
