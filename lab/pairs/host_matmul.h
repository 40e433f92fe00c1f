// A float64 matrix product for references: blocked loops that the compiler of the harness vectorises.
#pragma once

#include "pairs/host_rows.h"

namespace tilewright::lab {

// c (m, n) = a (m, k) · b (k, n), row-major; rows of `a` and of `c` are `lda` and `ldc` elements apart.
struct HostMatmul {
  const double* a;
  const double* b;
  double* c;
  Index m, n, k, lda, ldb, ldc;
};
void host_matmul(const HostMatmul& work);                    // on this thread
void host_matmul(const HostMatmul& work, ThreadPool& pool);  // rows shared out
// The transpose of a (rows, columns) matrix whose rows are `stride` elements apart.
HostArray host_transpose(const double* a, Index rows, Index columns, Index stride);

}  // namespace tilewright::lab
