// LoopText: one part of an element loop as C++ text.
//
// An operation used once is written inside the expression that uses it, up to the size of a readable line; a
// product used once by an addition or subtraction becomes a multiply-add (one rounding instead of two, never
// less exact). What does not change along the vectors' axis is computed once per row as a scalar. Along that
// axis runs a main loop with several vectors in flight and no masks, then, where the count is not a whole
// number of those steps or a view ends inside, a second loop of single vectors under masks.
#pragma once

#include "backends/cpu/loops/loop_analysis.h"
#include "backends/cpu/loops/loop_walk.h"

namespace tilewright::cpu {

class LoopText {
 public:
  explicit LoopText(KernelText& k, LoopPart part, RowWalk walk = {});
  void print();

 private:
  LoopState state_;
  LoopLanes lanes_;
  LoopAnalysis analysis_;
  LoopExpressions expressions_;
  LoopReductions reductions_;
  LoopUniform uniform_;
  LoopPointers pointers_;
  LoopBody body_;
  LoopWalk order_;
};

}  // namespace tilewright::cpu
