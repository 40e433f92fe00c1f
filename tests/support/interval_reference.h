// The float64 oracle in intervals, for graphs in which a rounding decides. An interval holds every value to
// which rounding may have moved a value, as far as the error of every op reaches; a decision that is taken of
// it (a truncation, a comparison, an index) has every outcome that one of these has.
//
// Random roundings (random_graph.h: reference_with_spread) find such an outcome with a probability that may
// be small; intervals contain it. They are wider: values that err together are taken to err apart. So what
// random roundings explain is left to these.
#pragma once

#include "ir/op.h"

#include <span>
#include <string>
#include <vector>

namespace tilewright::test {

// The lowest and the highest value that each element of an output may have. Both NaN where it certainly is
// NaN; from -inf to inf, or from the type's lowest integer to its highest, where nothing is known.
struct Intervals {
  std::vector<ir::HostTensor> low, high;
};

// Runs a graph in intervals. Each op that is not exact brings the error of a random rounding (noise_of); sums
// and products of matrices bring those of as many additions as they have terms. What is not written is
// computed in f32 at least.
Intervals reference_intervals(const ir::Graph& graph, std::span<const ir::HostTensor> inputs);

// What lies outside, or nothing.
std::string difference(std::span<const ir::HostTensor> got, const Intervals& intervals);

// The relative error of an op's result: an f32 computed within 2 ulp, or a value that is stored in a narrow
// type.
double noise_of(DType dtype);
// Whether an op's result has no error of its own: it is an operand, or a whole number, or was rounded by the
// graph itself.
bool is_exact(const ir::Op& op);

}  // namespace tilewright::test
