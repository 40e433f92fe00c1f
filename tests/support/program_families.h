// Programs that grow: each family repeats one thing `n` times. What a compiler does for 4 n of them must stay
// near four times what it does for n (tests/compile/compile_time_test.cpp).
#pragma once

#include "ir/graph.h"
#include "support/derivative.h"

#include <string>
#include <vector>

namespace tilewright::test {

struct ProgramFamily {
  const char* name;
  ir::Value (*write)(ir::Graph& graph, int n);
  int size;           // programs of this many repetitions and of four times as many are compared
  bool twice = true;  // second derivatives, too
};
const std::vector<ProgramFamily>& program_families();

// The family's program, the gradient of its sum with respect to every float input, or that of sum(g·g), where
// g is the gradient with respect to the first input.
ir::Graph program_of(const ProgramFamily& family, Derivative derivative, int n);

}  // namespace tilewright::test
