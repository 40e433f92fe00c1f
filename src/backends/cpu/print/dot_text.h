// A dot as calls of the functions in tw_cpu/dot*.h.
#pragma once

#include "backends/cpu/text/kernel_text.h"

namespace tilewright::cpu {

// What the kernel's dots pack at most at one time.
Index dot_room_bytes(const tile::Kernel& kernel, int lanes);
// Whether some dot of the kernel may go by tile registers, which are then to be configured.
bool uses_tile_registers(const tile::Kernel& kernel);
void print_dot(KernelText& k, const tile::Op& op);

}  // namespace tilewright::cpu
