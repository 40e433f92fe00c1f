// What a compiled function tells about itself.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

// Fills in kernels, refused fusions, stages and memory.
void describe(const CompiledGraph& graph, SpecialisationReport& report);
std::string explain_text(const std::vector<SpecialisationReport>& reports);

// Adds `graph`'s nodes to `into`, its inputs replaced; returns its outputs there.
std::vector<ir::Value> inline_graph(ir::Graph& into, const ir::Graph& graph,
                                    const std::vector<ir::Value>& inputs);

}  // namespace tilewright::detail
