// Attention as tile kernels: loops in which the product of a product is taken, in the shapes that a backend's
// schedules for such chains must take.
#pragma once

#include <tilewright/tile/builder.h>

#include <string>

namespace tilewright::tile::samples {

// A kernel of attention. With 8-bit floats v lies by keys, each block's product is added in f32, and weights
// are 2^8 times as large (their type has no more than 2^-9 below 1).
struct AttentionKernel {
  DType dtype = DType::bf16, out = DType::bf16;
  Index heads = 1, shared = 1;  // query heads, and how many of them share their keys and values
  Index queries = 128, keys = 128, depth = 64, columns = 64;  // of q and k; of v
  Index block_m = 128, block_n = 128;
  bool causal = false;
  Index unseen = 0;          // causal: the first queries see no key at all
  bool skips = false;        // causal: the loop ends with the last block that a program sees
  bool splits = false;       // the blocks that are seen as a whole have a loop of their own, without a mask
  bool log_sum_exp = false;  // a second result, f32 [heads, queries]
  Index gap = 0;             // elements between rows
};
std::string to_string(const AttentionKernel& a);
// Views q, k, v, y (and lse); the grid counts one, rows, heads. Rows that see nothing give 0 (and -inf).
Kernel attention(const AttentionKernel& a);
// Gradient by q from the rows' log-sum-exp and Σ dy · y: views q, k, v, dy, lse, delta, dq. Two products are
// taken of each block of keys and of values, and what is made of them is multiplied with the keys once more.
Kernel attention_gradient_q(const AttentionKernel& a);

}  // namespace tilewright::tile::samples
