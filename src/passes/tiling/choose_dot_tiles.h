// The edges of a matmul's tiles: what one program of its grid computes, for a target.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// c[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]; every size at least 1.
struct DotProblem {
  Index batch = 1, m = 1, n = 1, k = 1;
  Index inner_k = 1;         // k counts blocks of so many (Sym::adds_up)
  DType dtype = DType::f32;  // in which the operands meet
  bool in_memory = true;     // the operands are read as they stand, nothing is computed on them …
  bool copied = true;        // … and their blocks lie as a copy engine takes them
  bool by_k = false;         // k is the contiguous axis of both operands …
  bool b_by_k = false;       // … or of b
  bool b_by_rows = false;    // n is the contiguous axis of b
  bool tf32 = false;         // f32 operands may be rounded to it
  bool whole_m = false;      // a tile must hold all of m …
  bool whole_n = false;      // … or n: at most kMostHeld (statistics.h)
  bool splits = false;       // several programs may share one sum
  int ops_after = 0;         // pointwise, on an element of the result
};

struct DotTiles {
  Index bm = 1, bn = 1, bk = 1;
  Index splits = 1;  // programs that share k; a second kernel adds what they give
  friend bool operator==(const DotTiles&, const DotTiles&) = default;
};

// Whether tensor cores multiply f32 operands as tf32.
bool multiplied_as_tf32(const DotProblem& problem, const tile::Target& target);
// Whether the copy engine feeds tensor cores with it (wgmma).
bool on_tensor_cores(const DotProblem& problem, const tile::Target& target);

// Of the vector units' rate, what products reach that are left to them.
double vector_share(const DotProblem& problem, const tile::Target& target);

// What it takes to add the sums of programs that share k, in a kernel of its own.
double merge_us(const DotProblem& problem, Index splits, const tile::Target& target);

// Edges worth measuring, the one that the model finds fastest first; at least one.
std::vector<DotTiles> rank_dot_tiles(const DotProblem& problem, const tile::Target& target);

}  // namespace tilewright::passes
