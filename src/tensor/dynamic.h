// Dynamic dimensions: programs of one function at several sizes that share their kernels.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

// Throws Error when an entry names no dimension of the arguments.
void check_dynamic(const std::vector<DynamicDim>& dynamic, const std::vector<ir::Type>& arguments,
                   const Location& where);

// The function's graph for arguments of these types.
using TraceAt = std::function<ir::Graph(const std::vector<ir::Type>& arguments)>;

// A program for `graph`, the function's graph at `arguments`, with kernels that take as arguments what
// changes with the dynamic dimensions, found by comparing with other sizes. `how` says what came of it; where
// the sizes need kernels of their own, the reason, and there is no program.
std::shared_ptr<CompiledGraph> compile_for_sizes(DeviceState& device, const ir::Graph& graph,
                                                 const TraceAt& trace_at,
                                                 const std::vector<ir::Type>& arguments,
                                                 const std::vector<DynamicDim>& dynamic,
                                                 const GraphOptions& options, std::string& how);

}  // namespace tilewright::detail
