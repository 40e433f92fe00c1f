// Products of 8-bit floats where no matrix unit takes them.
#pragma once

#include "ir/graph.h"

#include <tilewright/tile/target.h>

namespace tilewright::passes {

// The graph with the factors of products of 8-bit floats in bf16, on a target whose matrix units multiply
// bf16 and no such floats. bf16 has all of their values, and their products are exact in the sums: the
// results are those of 8 bits. Other targets' graphs stay.
ir::Graph with_converted_factors(const ir::Graph& graph, const tile::Target& target);

}  // namespace tilewright::passes
