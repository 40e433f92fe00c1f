// Graphs whose inputs are given for good: outputs that could lie in their memory, and a plan where they do.
#pragma once

#include "passes/pipeline.h"

namespace tilewright::test {

// The graph with one more output of each input's type of which there is a value.
ir::Graph with_fitting_outputs(ir::Graph graph);

// The compiled graph with all inputs donated.
passes::Compiled donating(passes::Compiled compiled);
// Inputs whose memory an output of it takes.
int donations(const passes::Compiled& compiled);

}  // namespace tilewright::test
