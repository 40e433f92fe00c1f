// Online reductions: which dependent reductions share one loop over the reduced variables. A reduction
// r = Σ F(x, m) of an earlier one m can be carried along while m still changes, when F splits into a part of
// the element and a factor of m: then r · factor(m_new) / factor(m_old) is what r would have been, and only
// that ratio is ever computed. A ratio above 1 is refused: what it would bring back may have vanished. From
// softmax(QKᵀ)·V this makes flash attention. Source of the method: the online softmax of Milakov and
// Gimelshein (arXiv 1805.02867), as algebra over any such F.
#pragma once

#include "passes/nest/loop_nest.h"

#include <memory>
#include <optional>
#include <vector>

namespace tilewright::passes {

// How a value changes when earlier reductions go from their old values to new ones: as a factor, or as a
// difference, that is the same for every element.
struct Change {
  enum class Kind : std::uint8_t {
    none,        // factor 1, difference 0
    old_to_new,  // of reduction `expr`: its new value over, or less, its old one
    exp,         // factor: e to the difference `parts[0]`
    exp2,
    product,   // factors multiplied
    inverse,   // 1 / factor
    sum,       // differences added
    negative,  // of a difference
    scaled,    // a difference times the value of `expr`
    at_least,  // the difference of old_to_new, each end first raised to the value of `expr` …
    at_most,   // lowered to it
  };
  Kind kind = Kind::none;
  int expr = -1;
  std::vector<std::shared_ptr<const Change>> parts;
  int clamped =
      -1;  // at_least, at_most: the expr that the new end is a value of; equal changes may name others
  friend bool operator==(const Change& a, const Change& b);
};
using ChangePtr = std::shared_ptr<const Change>;

// The factor by which `expr` changes with the reductions `moving`; null when there is none.
ChangePtr factor_of(const ir::Graph& graph, const LoopNest& nest, int expr, const std::vector<int>& moving);

// One loop over the reduced variables: the reductions and dots it accumulates, in the order of their levels.
struct ReductionPass {
  std::vector<int> exprs;
  int first_level = 1;
  std::vector<ChangePtr>
      factors;  // of each: what its accumulated value is multiplied by before it is added to
};

// The fewest passes; each begins where a reduction cannot be carried along.
std::vector<ReductionPass> reduction_passes(const ir::Graph& graph, const LoopNest& nest);

}  // namespace tilewright::passes
