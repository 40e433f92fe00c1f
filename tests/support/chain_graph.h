// Graphs in which one thing is made of another of its kind: products of products with residuals, sums over
// the batch, stretched operands used twice and reshapes between them; or concats and stacks of one another.
// Their values, their gradients, or the gradients of the squares of these.
#pragma once

#include "ir/graph.h"
#include "support/choices.h"

namespace tilewright::test {

ir::Graph product_chain_graph(Choices& choices);
ir::Graph joined_graph(Choices& choices);

}  // namespace tilewright::test
