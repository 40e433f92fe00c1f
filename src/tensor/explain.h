// What a compiled function tells about itself.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

// Fills in kernels, refused fusions, stages and memory; under another precision than f32, types.
void describe(const CompiledGraph& graph, Precision precision, SpecialisationReport& report);
// A function that runs a graph, for programs that come as text; one tensor per input of the graph.
ListFunction graph_function(ir::Graph graph);

// Adds `graph`'s nodes to `into`, its inputs replaced; returns its outputs there.
std::vector<ir::Value> inline_graph(ir::Graph& into, const ir::Graph& graph,
                                    const std::vector<ir::Value>& inputs);

}  // namespace tilewright::detail
