// A row's maximum and its sum of powers below it, whose exchanges between warps are one.
#pragma once

#include "backends/printer/loop_plan.h"

#include <tilewright/tile/kernel.h>

#include <vector>

namespace tilewright::cuda {

struct JoinedExchange {
  tile::ValueId max, sum;
  // The plan's steps that reduce them; between are scalars that the second does not read.
  std::ptrdiff_t first, second;
};
std::vector<JoinedExchange> joined_exchanges(const tile::Kernel& kernel, const printer::LoopPlan& plan);

}  // namespace tilewright::cuda
