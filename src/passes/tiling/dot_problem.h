// DotProblem: a matmul as the models of tiles see it, and DotTiles: how it is cut.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>

namespace tilewright::passes {

// c[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]; every size at least 1.
struct DotProblem {
  Index batch = 1, m = 1, n = 1, k = 1;
  Index inner_k = 1;         // k counts blocks of so many (Expr::scaled_accumulation)
  DType dtype = DType::f32;  // of both operands of the dot
  bool in_memory = true;     // the operands are read as they stand, nothing is computed on them
  bool copied = true;      // blocks of operands lie as the target's matrix unit takes them (tile::BlockRules)
  bool by_k = false;       // k is the contiguous axis of both operands
  bool b_by_k = false;     // k is the contiguous axis of b
  bool b_by_rows = false;  // n is the contiguous axis of b
  bool rounds = false;     // f32 operands may be rounded to fewer bits
  bool two_level = false;  // the sum is as exact as one in f32 (tile::DotPrecision)
  bool whole_m = false;    // a tile must hold all of m
  bool whole_n = false;    // a tile must hold all of n: at most kMostHeld (epilogue_reductions.h)
  bool split_k = false;    // several programs may share one sum
  double a_lines = 1, b_lines = 1;  // of the cache, that a row of their blocks lies in (BlockRules::lines)
  int ops_after = 0;                // pointwise, on an element of the result

  Index operand_bytes() const { return static_cast<Index>(size_bytes(dtype)); }
  // The programs of tiles of these edges; and whether such a tile holds what one must.
  Index programs(Index bm, Index bn) const { return batch * ceil_div(m, bm) * ceil_div(n, bn); }
  bool is_held(Index bm, Index bn) const { return (!whole_m || bm >= m) && (!whole_n || bn >= n); }
};

struct DotTiles {
  Index bm = 1, bn = 1, bk = 1;
  Index split_k = 1;  // programs that share k; a second kernel adds what they give
  friend bool operator==(const DotTiles&, const DotTiles&) = default;
};

}  // namespace tilewright::passes
