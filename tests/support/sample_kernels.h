// Kernels written by hand through the Builder: the shapes that every part of the library must handle.
#pragma once

#include <tilewright/tile/builder.h>

namespace tilewright::tile::samples {

// y[i] = x[i] > 0 ? x[i] : exp(x[i]) - 1 over a runtime size n (f32).
Kernel elu(Index block = 1024);

// Softmax of each row, the whole row in one tile: x, y [rows, columns] of `dtype`.
Kernel row_softmax(DType dtype, Index rows, Index columns);
// The same for rows longer than a tile: a loop carries (max, sum), a second one writes.
Kernel row_softmax_looped(DType dtype, Index rows, Index columns, Index block);

struct MatmulSizes {
  Index m, n, k, block_m, block_n, block_k;
};
// c = gelu_tanh(a · b + bias): a [m,k], b [k,n], c [m,n] of `dtype`, bias f32 [n].
Kernel matmul_gelu(DType dtype, const MatmulSizes& s);

struct AttentionSizes {
  Index heads, tokens, width, block_m, block_n;
  bool causal = true;
};
// o = softmax(q · kᵀ / √width) · v with lse (base 2): q, k, v, o [heads, tokens, width], lse f32 [heads,
// tokens].
Kernel attention(DType dtype, const AttentionSizes& s);

// sums[j] = Σ_i x[i,j] of a tall f32 matrix: `splits` partial rows, then atomics or a second kernel.
Kernel column_sums_atomic(Index rows, Index columns, Index block_rows, Index block_columns);
Kernel column_sums_partial(Index rows, Index columns, Index block_rows, Index block_columns);

}  // namespace tilewright::tile::samples
