// The distance of an op's right results from its eval, read from the op's lowering.
#pragma once

#include "ir/op.h"

#include <span>
#include <vector>

namespace tilewright::test {

// The most by which roundings of its lowering may change each element of the graph's one output, which a
// pointwise op makes of the inputs or of views of them, before it is stored, by the primitives' own
// bounds (reference::run_with_bounds). 0 where the lowering rounds nothing; infinite where a rounding
// decides.
std::vector<double> lowering_bounds(const ir::Graph& graph, std::span<const ir::HostTensor> inputs);

}  // namespace tilewright::test
