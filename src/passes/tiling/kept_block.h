// Operands of dots that are a block of memory of which some rows or columns count as zeros, because nothing
// uses what they hold: keys past a sequence's end, whose weights are zeros (0 times NaN is NaN).
#pragma once

#include "passes/nest/dot_axes.h"

#include <vector>

namespace tilewright::passes {

struct KeptBlock {
  int load = -1;          // -1: something else is computed
  std::vector<int> used;  // bools: zeros where any of them is false
};
// A dot's operand as a load; also where bools choose between it and zeros along one axis of a block that a
// back-to-back matmul's loop walks: a matrix unit's blocks get their zeros on chip.
KeptBlock kept_block(const LoopNest& nest, const DotAxes& axes, int operand);
inline int block_of_operand(const LoopNest& nest, const DotAxes& axes, int operand) {
  return kept_block(nest, axes, operand).load;
}

}  // namespace tilewright::passes
