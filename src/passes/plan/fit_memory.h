// fit_memory: a plan whose temporaries take less memory, because launches are repeated.
//
// A temporary that nobody reads for a while need not be kept: what made it is launched once more in front of
// the next launch that reads it. No kernel is new, and the repeated ones give the same bits. First the
// temporaries of checkpoint(f) are given up, all of each call's. Then, where that is not enough, others are
// chosen one after another, each time where most bytes are alive, by the predicted time that a byte costs (as
// Kirisame et al., "Dynamic Tensor Rematerialization", 2021, choose at run time): a smaller budget repeats
// all that a larger one repeats, and more.
#pragma once

#include "passes/plan/plan_groups.h"
#include "passes/plan/repeat_launches.h"

#include <functional>
#include <optional>

namespace tilewright::passes {

struct MemoryWish {
  std::optional<Index> bytes = std::nullopt;  // for temporaries; none: any number
  CheckpointedLaunches checkpointed = {};
};

// Changes the compiled plan, whose temporaries are not placed yet, so that `place` (which places them, and
// may share the memory of some) finds room for them as is wished. Where it cannot be done the plan with the
// least memory is what remains.
MemoryFit fit_memory(Compiled& compiled, const MemoryWish& wish, const std::function<void(Compiled&)>& place);

}  // namespace tilewright::passes
