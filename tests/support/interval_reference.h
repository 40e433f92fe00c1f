// Where a rounding decides: the float64 oracle in intervals. Each value is one that rounding may have moved
// it to, as far as the error of every op reaches, and a decision that is taken of such a value (a truncation,
// a comparison, an index) has every outcome that one of them has.
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

// Each op brings the error that random roundings bring (noise_of), but those that are exact; sums and
// products of matrices that of as many additions as they have terms. What is not written is computed in f32
// at least.
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
