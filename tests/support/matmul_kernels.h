// Matmuls as tile kernels, in the shapes that a backend's schedules for dots must take: operands stored
// either way round, ragged edges, batches, and what may follow the loop.
#pragma once

#include <tilewright/tile/builder.h>

#include <string>

namespace tilewright::tile::samples {

struct MatmulKernel {
  DType dtype = DType::bf16, out = DType::bf16;
  Index batch = 1, m = 128, n = 128, k = 64;
  Index block_m = 128, block_n = 128, block_k = 64;
  bool a_by_columns = false, b_by_columns = false;  // memory holds a as [k, m], b as [n, k]
  bool bias_gelu = false;                           // c = gelu_tanh(a · b + bias), bias f32 [n]
  bool row_sums = false;     // sums[i] = Σ_j c[i, j] of a program's columns, added atomically
  bool maxima = false;       // of c: columns[i, j] of program row i, largest[i, j] of the program itself
  bool accumulates = false;  // in place: c is added to what it was
  int residuals = 0;         // tensors like c that are added to it
  int beside = 0;            // tensors like c, each updated by it: next = 0.9 · last + 0.1 · c
  DType beside_type = DType::f32;  // of both
  Index gap = 0;                   // elements between the rows of a and b
  Index align_bytes = 256;
  bool tf32 = false;       // of f32 operands 10 bits of mantissa are enough
  bool any_depth = false;  // only so much of k is summed as the scalar argument `depth` says
};
std::string to_string(const MatmulKernel& m);
// The same of another type, as tensor cores take it: blocks of 128 bytes of k; 8-bit types lie by k, f32 is
// multiplied as tf32 (and, if nothing else is said, summed to f32).
MatmulKernel of_bytes(DType dtype, MatmulKernel m);
MatmulKernel as_tf32(MatmulKernel m, DType out = DType::f32);
// Views a, b, c (and bias, residual_0 …, last_0, next_0 …, sums, columns, largest); the grid counts columns,
// rows, batch.
Kernel matmul(const MatmulKernel& m);

}  // namespace tilewright::tile::samples
