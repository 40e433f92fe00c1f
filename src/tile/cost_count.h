// The counting half of the cost model: operations and accesses of the programs of a launch.
#pragma once

#include <tilewright/perf/cost.h>
#include <tilewright/tile/kernel.h>

#include <map>
#include <vector>

namespace tilewright::tile {

struct Counts {
  perf::Cost work;                       // operations only
  std::map<const Op*, double> accessed;  // elements each memory op touches, over all programs; by address,
                                         // so look up only
  bool exact = true;
};

Counts count_launch(const Kernel& kernel, const std::vector<std::int64_t>& scalars, Index most_sampled,
                    const std::map<const Op*, double>& by_data = {});

}  // namespace tilewright::tile
