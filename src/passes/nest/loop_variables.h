// Splits and merges the loop variables of a group so that its index expressions become affine over few
// variables.
#pragma once

#include "passes/nest/loop_nest.h"

namespace tilewright::passes {

// A variable that some index divides by n (and n divides its extent) becomes two; repeated until no index
// does.
// SplitReduced::no leaves the reduced ones whole, at the price of divisions in the kernel.
enum class SplitReduced : bool { no, yes };
void split_k_variables(LoopNest& nest, SplitReduced reduced);
// Neighbouring variables that every index walks as one become one. Parallel and reduced ones never merge.
void merge_variables(LoopNest& nest);

}  // namespace tilewright::passes
