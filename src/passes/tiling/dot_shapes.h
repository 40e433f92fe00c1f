// How a program's dots are cut into tiles for a target: what its matrix units take, what they reach, and the
// shapes worth measuring.
#pragma once

#include "passes/nest/tile_shape.h"
#include "passes/tiling/choose_dot_tiles.h"

#include <string_view>

namespace tilewright::passes {

// Whether a matrix unit multiplies the program's dot.
bool dot_on_matrix_unit(const LoopNest& nest, const tile::Target& target);

// Best first; choose_dot_shape() is the first of them.
std::vector<TileShape> rank_dot_shapes(const LoopNest& nest, const tile::Target& target);
TileShape choose_dot_shape(const LoopNest& nest, const tile::Target& target);

// Bytes of which a load's start and all of its strides, but that of its contiguous axis, are multiples; 0
// where it has no others.
Index row_step_bytes(const Expr& load);

// Why a back-to-back matmul does not run on the target's matrix units; empty where it does: of operands that
// its blocks (tile::BlockRules) can hold as they lie, but for operands a that are computed.
std::string_view why_not_on_matrix_unit(const LoopNest& nest, const tile::Target& target);
inline bool b2b_on_matrix_unit(const LoopNest& nest, const tile::Target& target) {
  return why_not_on_matrix_unit(nest, target).empty();
}

// What a program's dots reach where the machine is full: the peak of the matrix units that take them, or the
// share of the vector units' that their inner loops were measured to have.
struct DotRate {
  bool on_matrix_units = false;
  double flops_per_s = 0;
};
DotRate dot_rate(const LoopNest& nest, const tile::Target& target);

}  // namespace tilewright::passes
