// What pairs around matrix products share: the product in float64 with the size of its sums, cost, knobs.
#pragma once

#include "pairs/host_matmul.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

// How a matrix lies in memory: row-major, or as its transpose does.
enum class MatrixOrder { rows, columns };

struct ProductSizes {
  Index m = 0, n = 0, k = 0;
  MatrixOrder b_order = MatrixOrder::rows;
  MatrixOrder a_order = MatrixOrder::rows;

  Shape b_shape() const { return b_order == MatrixOrder::rows ? Shape{k, n} : Shape{n, k}; }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  std::string text() const { return shape_text(Shape{m, n, k}); }
};

// a (m, k) · b, and for each element a bound on what it sums: Σ |aᵢₚ| |bₚⱼ| ≤ |aᵢ| |bⱼ| (Cauchy and Schwarz).
struct HostProduct {
  HostArray values;                   // (m, n)
  HostArray row_norms, column_norms;  // |aᵢ| (m), |bⱼ| (n)

  double size(Index row, Index column) const {
    return row_norms[static_cast<std::size_t>(row)] * column_norms[static_cast<std::size_t>(column)];
  }
};
HostProduct host_product(const HostArray& a, const HostArray& b, const ProductSizes& sizes, ThreadPool& pool);

// The Euclidean norm of each row of `a`, whose rows are `columns` long.
HostArray row_norms(const HostArray& a, Index columns, ThreadPool& pool);

// The same of each column of `a` (rows, columns).
HostArray column_norms(const double* a, Index rows, Index columns);
HostArray column_norms(const HostArray& a, Index columns, ThreadPool& pool);

// a · b of tensors, b as `order` says.
Tensor product(const Tensor& a, const Tensor& b, MatrixOrder order);

// Compulsory traffic and the FLOPs of the products alone, as such rates are stated: what is done to their
// results counts nothing.
perf::Cost product_cost(const std::vector<InputSpec>& inputs, const std::vector<OutputSpec>& outputs,
                        double flops, DType dtype);

// The knobs, and what they say. `shape` is m x n x k.
std::vector<Knob> product_knobs();
ProductSizes product_sizes(const Knobs& knobs, const std::string& pair);
// The sizes for a pair without a knob for the order.
ProductSizes product_sizes(const Knobs& knobs, const std::string& pair, MatrixOrder order);
Knob product_dtype_knob();
std::pair<std::string, std::string> b_order_parameter(MatrixOrder order);  // for peers

}  // namespace tilewright::lab
