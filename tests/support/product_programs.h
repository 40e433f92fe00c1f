// Random programs around batched products: products of products with what is added to them, sums over batch
// axes, operands that are broadcast and used twice, and views (reshapes first of all) before and after
// products; of some the gradients, and of some the gradients of these. Sizes are small and often equal, so
// that every axis fits every other one.
#pragma once

#include "ir/op.h"
#include "support/choices.h"
#include "support/derivative.h"

#include <vector>

namespace tilewright::test {

struct ProductProgram {
  Derivative derivative = Derivative::none;
  // What is derived is output 0, and smooth; the derivatives with respect to the inputs `wrt` follow.
  std::vector<int> wrt;
  ir::Graph graph{"products"};
};

ProductProgram random_product_program(Choices& random);

// At most 3/4, so that products of products stay moderate.
std::vector<ir::HostTensor> program_inputs(const ir::Graph& graph, std::uint64_t seed);

// A complaint if a program's derivatives are farther from differences of output 0 in float64 than these can
// tell. Otherwise empty, as for programs without derivatives. Only f64 programs say anything.
std::string difference_from_slopes(const ProductProgram& program, std::uint64_t seed);

}  // namespace tilewright::test
