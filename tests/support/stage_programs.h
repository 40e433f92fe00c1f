// A few small programs, for one reason each: rows in registers; a broadcast vector and narrow storage; two
// results and a reduction of rows into columns; random bits; a gather and its scatter; products with an
// epilogue; products that feed one another under a mask; a step of training, whose weights descend by their
// gradients. Their stages are goldens (tests/golden/stages), and they are part of what tools/replay compiles.
#pragma once

#include "ir/graph.h"

#include <vector>

namespace tilewright::test {

struct StageProgram {
  const char* name;
  std::vector<ir::Value> (*write)(ir::Graph& graph);
  std::vector<int> differentiate = {};  // with respect to these inputs; none: only the values
  double descent = 0;  // not 0: these inputs less so much of their gradients are given, not the gradients
};
const std::vector<StageProgram>& stage_programs();

ir::Graph graph_of(const StageProgram& program);

}  // namespace tilewright::test
