// The kernels of the lab's workloads, written by hand: what a backend must run at the speed of its memory,
// and small ones for each tile op.
#pragma once

#include <tilewright/tile/builder.h>

#include <string>
#include <vector>

namespace tilewright::tile::samples {

// A kernel with the sizes of its buffers, so that a runner can allocate and fill them.
struct HandKernel {
  std::string name;
  Kernel kernel;
  std::vector<std::int64_t> scalars;
  double bytes = 0;  // that must move between memory and chip
};

// --- workloads, one program a row unless said otherwise
Kernel elu_of(Index elements, Index block);
Kernel softmax_rows(DType dtype, Index rows, Index columns, Index rows_per_program);
// gelu(layer_norm(x) · weight + bias), weight and bias f32 [columns].
Kernel layernorm_gelu(DType dtype, Index rows, Index columns);
// s = x + residual; y = s · rsqrt(mean(s²) + ε) · weight; s is stored too.
Kernel add_rmsnorm(DType dtype, Index rows, Index columns);
// layer_norm(dropout(x, p) + residual) with weight and bias.
Kernel dropout_add_layernorm(DType dtype, Index rows, Index columns, double p);
// loss[i] = logsumexp(x[i]) - x[i, label[i]]; gradient = (softmax(x) - onehot) · scale.
Kernel cross_entropy(DType dtype, Index rows, Index columns);
Kernel sum_partials(Index elements, Index block, Index programs);
Kernel transpose_tiles(DType dtype, Index rows, Index columns, Index edge);
Kernel copy_of(DType dtype, Index elements, Index block);

// --- one for each kind of tile op, at small sizes
std::vector<HandKernel> small_kernels();
// The workloads at the lab's sizes on a GPU.
std::vector<HandKernel> lab_kernels();

}  // namespace tilewright::tile::samples
