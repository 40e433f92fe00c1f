// Product: what a kernel computes where that is d = a · b and nothing else, as libraries describe it: sizes,
// and the strides of three matrices.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <string>

namespace tilewright::cuda {

struct ProductMatrix {
  int view = -1;  // of the kernel
  DType dtype = DType::f32;
  Index start = 0;  // elements from the view's coordinate 0 to the matrix's first one
  Index row_stride = 0, column_stride = 0, batch_stride = 0;  // in elements
  friend bool operator==(const ProductMatrix&, const ProductMatrix&) = default;
};

// d[i, j] = Σ_l a[i, l] · b[l, j] in each of the batch, and no other element of d's view is written. Strides
// along an extent of 1 say nothing.
struct Product {
  Index m = 0, n = 0, k = 0, batch = 1;
  ProductMatrix a, b, d;        // (batch, m, k), (batch, k, n), (batch, m, n)
  DType sum_type = DType::f32;  // products are summed in it and rounded once, to d's type
  bool tf32 = false;            // operands of f32 may be rounded to 10 bits of mantissa
  friend bool operator==(const Product&, const Product&) = default;
};

// Empty where the kernel computes something else, where arguments decide its sizes, or where this does not
// see that it is a product.
std::optional<Product> find_product(const tile::Kernel& kernel);

// The most bytes, a power of two up to 256, to a multiple of which every matrix of the batch is aligned.
Index alignment_of(const tile::Kernel& kernel, Index batch, const ProductMatrix& matrix);

}  // namespace tilewright::cuda
