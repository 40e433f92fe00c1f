// What explain() says of types: which operation of a program runs in which.
#pragma once

#include "tensor/state.h"

namespace tilewright::detail {

// Throws Error on a value that is no Precision.
void check_precision(Precision precision, const Location& where);

// Whether one of these nodes is a product of f32.
bool has_f32_product(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes);

// "matmul bf16, sums f32; add mul f32": operations on floats among these nodes, products first. Views, casts
// and numbers are none.
std::string types_text(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes);

// "bf16: 6 products of bf16 with sums of f32; 2 of other types": of a graph after the passes.
std::string precision_text(const ir::Graph& graph, Precision precision);

}  // namespace tilewright::detail
