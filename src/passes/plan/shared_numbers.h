// Kernels of one plan that differ in numbers alone, as those of layers do whose dropout has keys of its own,
// become one kernel, which is compiled once: each launch passes its numbers.
#pragma once

#include <tilewright/tile/plan.h>

namespace tilewright::passes {

// Numbers that values are computed from become parameters. Those that say where elements lie, how often a
// loop runs or what a mask covers stay constants, from which backends choose how a kernel runs.
void share_numbers(tile::Plan& plan);

}  // namespace tilewright::passes
