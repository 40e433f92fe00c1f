// The edges of a matmul's tiles: what one program of its grid computes, for a target.
#pragma once

#include "passes/tiling/dot_problem.h"

#include <tilewright/tile/target.h>

#include <vector>

namespace tilewright::passes {

// The target's matrix unit that multiplies a product, and its row for the operands' type; none where the
// ordinary units do.
struct MatrixChoice {
  const tile::MatrixUnit* unit = nullptr;
  const tile::MatrixOperands* operands = nullptr;
  explicit operator bool() const { return unit != nullptr; }
  bool rounds() const { return operands != nullptr && operands->rounded; }
};
MatrixChoice matrix_choice(const DotProblem& problem, const tile::Target& target);

// A unit's row for a product of operands of these types, as they are; null where it has none.
const tile::MatrixOperands* exact_operands(const tile::MatrixUnit& unit, DType a, DType b);

// Whether a problem's multiplications go at the matrix units' rate, whatever its size: one too small for them
// waits for memory.
bool at_matrix_rate(const DotProblem& problem, const tile::Target& target);

// What products that are left to the vector units reach of their rate.
double vector_share(const DotProblem& problem, const tile::Target& target);

// What it takes to add the sums of programs that share k, in a kernel of its own.
double split_k_combine_us(const DotProblem& problem, Index split_k, const tile::Target& target);

// Programs worth trying for one sum: as many as two waves have room for, each with `fewest` of `rounds`.
Index most_split_k(Index programs, Index rounds, Index fewest, const tile::Target& target);

// Edges worth measuring, the one that the model finds fastest first; at least one.
std::vector<DotTiles> rank_dot_tiles(const DotProblem& problem, const tile::Target& target);

}  // namespace tilewright::passes
