// The edges of a matmul's tiles: what one program of its grid computes, for a target.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// c[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]; every size at least 1.
struct DotProblem {
  Index batch = 1, m = 1, n = 1, k = 1;
  DType dtype = DType::f32;  // in which the operands meet
};

struct DotTiles {
  Index bm = 1, bn = 1, bk = 1;
  friend bool operator==(const DotTiles&, const DotTiles&) = default;
};

// Edges worth measuring, the one that the model finds fastest first; at least one.
std::vector<DotTiles> rank_dot_tiles(const DotProblem& problem, const tile::Target& target);

}  // namespace tilewright::passes
