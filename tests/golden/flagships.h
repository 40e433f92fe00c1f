// Programs whose kernels are looked at by hand: what the compiler itself writes for the work it is measured
// by.
#pragma once

#include "ir/graph.h"

#include <span>

namespace tilewright {

struct Flagship {
  const char* name;
  ir::Graph (*graph)();
};
std::span<const Flagship> flagships();

}  // namespace tilewright
