// Products read the rows of their operands as pieces of cache lines: rows that begin anywhere cost two lines
// for one, and rows that no unit may copy cost more than that. Copies whose rows lie further apart than they
// are long mend both.
#pragma once

#include "passes/fuse/group_plans.h"

namespace tilewright::passes {

// `graph` with copies of operands, rows aligned to the matrix unit's cache lines, where the prediction for a
// product that reads them is better by more than the copies cost. What a kernel computes is written so by it:
// such a copy is a node behind it, which fusion takes in, and who else reads the value element by element
// reads the copy. Nothing where no product gains. `graph` must be materialized (materialize.h).
std::optional<ir::Graph> align_rows(const ir::Graph& graph, GroupPlans& plans);

}  // namespace tilewright::passes
