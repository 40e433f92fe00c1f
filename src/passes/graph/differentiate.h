// Reverse-mode differentiation, ahead of time: a graph in, the joint graph of values and gradients out.
#pragma once

#include "ir/graph.h"

namespace tilewright::passes {

// Outputs: those of `forward`, then the gradient of output 0, a scalar of a float type, with respect to each
// of the inputs numbered in `wrt`. An input that does not reach output 0, or only through stop_gradient and
// what is constant almost everywhere (comparisons, integers, places of extremes), has a gradient of zeros: so
// has the mask in a first derivative when a second one is taken. Throws Error naming op and place when output
// 0 is no float scalar, an input is not of a float type, or floats on the way from it to output 0 come from
// an op without a gradient.
ir::Graph differentiate(const ir::Graph& forward, const std::vector<int>& wrt);

}  // namespace tilewright::passes
