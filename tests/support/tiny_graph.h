// Graphs around products and reductions of tiny, odd and one-wide shapes: a single row, a single column, a
// depth of one, sizes beside powers of two. Each way of lowering a product has its edges there.
#pragma once

#include "ir/graph.h"
#include "support/choices.h"

namespace tilewright::test {

// A product with or without batches and what stands around it, attention, a product with a matrix for each
// group of rows, or reductions; at times its gradients.
ir::Graph tiny_graph(Choices& choices);
// 1 in every second place, else one of 2 to 33 of which tiles and vectors have no whole number.
Index tiny_extent(Choices& choices);

}  // namespace tilewright::test
