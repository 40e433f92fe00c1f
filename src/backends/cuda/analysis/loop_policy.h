// How much of what loops share a schedule keeps in registers.
#pragma once

#include "backends/printer/loop_plan.h"

#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

namespace tilewright::cuda {

// What is kept between loops under a schedule: with many elements in a thread, all but the dearest values are
// computed again from the loaded ones, which take fewer registers.
bool crowded(const tile::Kernel& kernel, const tile::Schedule& schedule);
printer::LoopPolicy loop_policy(const tile::Kernel& kernel, const tile::Schedule& schedule);

}  // namespace tilewright::cuda
