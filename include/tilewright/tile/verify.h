// The verifier: what every backend may rely on.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <string>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// Empty when the kernel is well formed, else what is wrong and where ("%7 = dot …: shapes do not meet (at
// user.cpp:12)"). Refuses: values used before they are defined or out of scope, wrong operand counts, types
// and shapes, carried values that change type, block loads that provably leave their view without a fill,
// stores to blocks that provably overlap between programs, a view both read and written where the blocks may
// differ, sizes above the limits of kernel.h.
std::optional<std::string> verify(const Kernel& kernel);

}  // namespace tilewright::tile
#pragma GCC visibility pop
