// The oracle's matrix product in float64: OpenBLAS where the machine has it, plain loops otherwise.
#pragma once

#include <tilewright/base/shape.h>

namespace tilewright::ops {

// c [m, n] = a [m, k] · b [k, n], row-major.
void dgemm(const double* a, const double* b, double* c, Index m, Index n, Index k);

}  // namespace tilewright::ops
