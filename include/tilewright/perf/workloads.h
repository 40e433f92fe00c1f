// Workloads whose cost is a formula: what `tw roofline` asks about and what the lab's floors are made of.
#pragma once

#include <tilewright/base/shape.h>
#include <tilewright/perf/roofline.h>

#include <optional>

#pragma GCC visibility push(default)
namespace tilewright::perf {

// [B,D] x [D,F] -> [B,F], each operand read once and the result written once. Over several chips the inner
// extent D is split: every chip multiplies its part, and the partial results are all-reduced over the link in
// a ring.
struct Matmul {
  Index b = 1, d = 1, f = 1;
  DType weights = DType::bf16;      // [D,F] as stored
  DType activations = DType::bf16;  // [B,D] and the result as stored
  DType math = DType::bf16;         // what the unit multiplies
  Index chips = 1;
  friend bool operator==(const Matmul&, const Matmul&) = default;
};
Cost cost(const Matmul& work);  // of one chip
// The real batch from which on the work is compute-bound, by its exact bytes; empty when no batch is large
// enough, and with several chips, where the batch cancels out.
std::optional<double> critical_batch(const Matmul& work, const Hardware& hardware);
// The same where D and F are much larger than B: ridge x weight bytes / 2.
std::optional<double> critical_batch_limit(const Matmul& work, const Hardware& hardware);
// Over several chips: the inner extent D from which on the math covers the link. Empty on one chip.
std::optional<double> critical_depth(const Matmul& work, const Hardware& hardware);

// [N] . [N] -> [1] on the vector unit: 2N - 1 FLOPs.
struct Dot {
  Index n = 1;
  DType dtype = DType::bf16;
  friend bool operator==(const Dot&, const Dot&) = default;
};
Cost cost(const Dot& work);

// [B,D] x [B,D,F] -> [B,F]: a matrix of its own for each element of the batch, so nothing is reused.
struct BatchedMatvec {
  Index b = 1, d = 1, f = 1;
  DType weights = DType::i8;
  DType activations = DType::i8;
  DType math = DType::i8;
  friend bool operator==(const BatchedMatvec&, const BatchedMatvec&) = default;
};
Cost cost(const BatchedMatvec& work);

// [M,K] x [K,N] in tiles of bm x bn that keep their accumulator on chip and read both operands anew for each
// tile. Without K it is the steady state of the inner loop: one step in K of one tile, no output.
struct TiledMatmul {
  Index bm = 1, bn = 1;
  Index m = 0, n = 0, k = 0;  // 0: the steady state
  DType operands = DType::bf16;
  DType output = DType::bf16;
  DType math = DType::bf16;
  friend bool operator==(const TiledMatmul&, const TiledMatmul&) = default;
};
Cost cost(const TiledMatmul& work);
// FLOPs per byte of the inner loop: bm bn / (bm + bn) for 2-byte operands.
double tile_intensity(const TiledMatmul& work);

// Attention forward, softmax(Q K^T) V, for `heads` heads of [N,d].
struct Attention {
  // standard: S and P = softmax(S) go through memory, O(Nd + N^2).
  // flash: blocks of Q stay on chip, K and V are read once for each, O(Nd + N^2 d^2 / M) with M elements on
  // chip.
  enum class Traffic { standard, flash };
  Index n = 1, d = 64, heads = 1;
  Traffic traffic = Traffic::flash;
  bool causal = false;       // half of S: half the FLOPs and half of the traffic that goes with N^2
  double on_chip_bytes = 0;  // M in bytes, needed for flash
  DType dtype = DType::bf16;
  friend bool operator==(const Attention&, const Attention&) = default;
};
Cost cost(const Attention& work);
// Rows of Q in a block: a quarter of the on-chip memory holds it, the rest K, V and O (FlashAttention,
// algorithm 1).
Index flash_block_rows(const Attention& work);

}  // namespace tilewright::perf
#pragma GCC visibility pop
