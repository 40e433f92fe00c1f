// Precision as a rewriting of graphs: products of f32 as products of narrower operands.
#pragma once

#include "ir/graph.h"

#include <tilewright/passes/graph/precision.h>

namespace tilewright::passes {

// The graph with the operands of its f32 products in bf16 or f16, as `precision` says; the graph itself under
// Precision::f32 and Precision::tf32, which change no type. Inputs and outputs keep their types, and so does
// all that is no product of two f32 values with an f32 result. Products of depth 1 stay: they sum nothing.
//
// Sums are f32. A result is rounded to the narrow type, and is f32 again behind that, where another product
// is made of it and the program did not ask for its type by name: then it is what a kernel stores for the
// next, in half the bytes. A bias, which is the same for all rows, is added first. What no product is made of
// (a gradient of weights, a model's output) is not rounded, and neither are scores of attention and logits of
// a loss, whose functions name the type.
//
// Views are taken of what was rounded, not the other way round: a product and the two of its gradient read
// the same rounded operands. What a product reads so is what a sum over its rows reads, too, in f32: the
// gradient of a bias. The graph of a function and its gradient (differentiate.h) is rewritten as one,
// so that the gradient's products have the same types, and parameters, their gradients and updates are f32.
//
// After P. Micikevicius et al., Mixed Precision Training, 2018 (arXiv 1710.03740).
ir::Graph with_narrow_products(const ir::Graph& graph, Precision precision);

}  // namespace tilewright::passes
