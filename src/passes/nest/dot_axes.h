// Which loop variables are the rows, the columns and the depth of a program's dot.
#pragma once

#include "passes/nest/loop_nest.h"

#include <vector>

namespace tilewright::passes {

// -1 where no variable remains: that extent is 1.
struct DotAxes {
  int dot = -1;  // expr: the dot over the reduced variables, else an inner one
  int m = -1, n = -1, k = -1;
};

// m: the longest parallel variable that operand a alone depends on; n: b alone; k: the last reduced one. The
// other parallel variables choose the block of the result, the other reduced ones are loops around k.
DotAxes dot_axes(const LoopNest& nest);

// For each expr, whether each variable changes its value.
std::vector<std::vector<bool>> dependence(const LoopNest& nest);

}  // namespace tilewright::passes
