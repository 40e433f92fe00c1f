// The machine that this process runs on, from /sys and CPUID: what tile::Target says about a CPU.
#pragma once

#include "backends/cpu/host/isa.h"

#include <tilewright/tile/target.h>

#include <vector>

#include "backends/backend.h"

namespace tilewright::cpu {

// `threads` is how many cores kernels will run on.
tile::Target host_tile_target(Isa isa, int threads);

// Cores, instruction set, caches (how many of each this process may use), memory.
std::vector<backends::DeviceFact> host_facts(const CpuTarget& target, int threads);

}  // namespace tilewright::cpu
