// A float64 matrix product for references: blocks in the order in which they are multiplied, products in
// registers. It shares nothing with the kernels that it helps to check.
#pragma once

#include "pairs/host_rows.h"

namespace tilewright::lab {

// c (m, n) = a (m, k) · b (k, n). Rows are `ld…` elements apart, and what stands in a row `…_step`, so that a
// transpose needs no copy; c's rows are dense.
struct HostMatmul {
  const double* a;
  const double* b;
  double* c;
  Index m, n, k, lda, ldb, ldc;
  Index a_step = 1, b_step = 1;
};
// Multiplies on this thread, by vectors of at most so many elements: what this CPU has, or fewer.
void host_matmul(const HostMatmul& work, int most_lanes = 8);
void host_matmul(const HostMatmul& work, ThreadPool& pool);  // rows or columns shared out
// The transpose of a (rows, columns) matrix whose rows are `stride` elements apart.
HostArray host_transpose(const double* a, Index rows, Index columns, Index stride);

}  // namespace tilewright::lab
