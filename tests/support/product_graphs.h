// Graphs around one matmul, whose sizes break tilings: for comparing what lowering makes of them with the
// float64 oracle.
#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::test {

// a (m, k) · b (k, n), batched; b may lie by columns. `around` says what stands before and after the product.
struct ProductGraph {
  enum class Around : std::uint8_t {
    nothing,
    bias_and_silu,
    computed_operand,
    scaled_weights,       // b of 8 bits with a scale for 32 of k, in the type of a
    scaled_blocks,        // a scale for 128 of k of each row of a, and for each 128 by 128 of b
    quantised_weights,    // b of 8 bits with a scale for 128 of k of each column
    packed_weights,       // the same of 4 bits
    epilogue_reductions,  // a · b / 8 - 1/2, with the largest of each row, the sum of each column and the
                          // least of all
  };
  Index batch = 1, m = 1, n = 1, k = 1;
  DType dtype = DType::f32;           // of the operands; with weights of fewer bits, of a
  std::optional<DType> b_dtype = {};  // another 8-bit float
  bool b_by_columns = false;
  Index apart = 0;  // elements that rows of plain operands lie apart in memory, more than they are long
  Around around = Around::nothing;
};
std::string to_string(const ProductGraph& product);
ir::Graph graph_of(const ProductGraph& product);

// A product of 1 to some hundred rows and columns, k from 0 to some thousand: small enough to interpret.
ProductGraph random_product(std::uint64_t seed);

// The same with operands whose rows lie apart in memory, as products' unaligned ones are copied: aligned to
// 16 bytes, or anyhow.
ProductGraph random_product_of_rows_apart(std::uint64_t seed);

// Products whose forms only large sizes have: too large to interpret.
std::vector<ProductGraph> large_products();

}  // namespace tilewright::test
