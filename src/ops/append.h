// What the building functions share: adding a node, errors with the graph's location, axes. Only for
// ops/*.cpp.
#pragma once

#include "ops/functions.h"
#include "ops/rows.h"

namespace tilewright::ops {

// The node of `op`; the operands must be of one graph, and there must be one.
Value append(const ir::Op& op, const std::vector<Value>& operands, const ir::Attrs& attrs = {});

// Throws Error with x's graph's current location.
[[noreturn]] void fail(const Value& x, const std::string& message);

// A possibly negative axis within [0, rank).
int axis_of(std::string_view op, const Value& x, Index axis, int rank);
int axis_of(std::string_view op, const Value& x, Index axis);  // of x's own rank

}  // namespace tilewright::ops
