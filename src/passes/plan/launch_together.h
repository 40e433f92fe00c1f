// Launches that may run as one. A training step launches hundreds of kernels that are over in the time that a
// launch takes: updates of small parameters, last steps of sums. Many are one kernel on other memory.
#pragma once

#include "passes/plan/plan_groups.h"

namespace tilewright::passes {

// Brings short launches of one kernel that do not wait for one another behind one another and marks them
// (PlanStep::beside_previous, tile::Kernel::together), where the target runs such launches as one. They then
// wait for what the last of them needs, and what they read is kept as long: temporaries take at most
// `more_bytes` more. `compiled.overwriting` says which outputs lie in inputs' memory. Steps must not change
// places afterwards.
void launch_together(Compiled& compiled, Index more_bytes);

}  // namespace tilewright::passes
