// BlasProduct: a product as BLAS-like libraries take it: matrices that lie by columns, each read as it lies
// or transposed.
#pragma once

#include "backends/cuda/library/product.h"

#include <optional>
#include <string>

namespace tilewright::cuda {

struct BlasMatrix {
  ProductMatrix of;                                    // view, type, start and batch stride
  Index rows = 0, columns = 0, leading_dimension = 0;  // as it lies: a column begins so many elements on
  bool transposed = false;                             // before it is multiplied
};

// left (m, k) · right (k, n) = result (m, n), in each of the batch. A result that lies by rows is computed as
// its transpose, dᵀ = bᵀ · aᵀ: then left is the kernel's b.
struct BlasProduct {
  Index m = 0, n = 0, k = 0, batch = 1;
  BlasMatrix left, right, result;
  DType sum_type = DType::f32;
  bool tf32 = false;
};

// Empty where a matrix lies in another way: without a contiguous axis, backwards, or with rows that overlap.
std::optional<BlasProduct> as_blas(const Product& product);

// "view 1 (%a1): bf16 [768, 3072], leading dimension 768, transposed": all there is to say, in one line.
std::string to_string(const BlasMatrix& matrix, const tile::Kernel& kernel, Index batch);

}  // namespace tilewright::cuda
