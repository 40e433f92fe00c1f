// References that are found by trying: float64 results, and how far rounding at random takes each element.
// For programs whose errors nobody adds up by hand: steps of a training, and what the sweep draws.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/run/workload.h"
#include "ir/graph.h"
#include "pairs/tensor_inputs.h"

namespace tilewright::lab {

// Outputs, and then as many arrays of how far elements were from their places in runs that round at random.
using Spread = std::vector<std::vector<double>>;

// A result may be kFactor times as far off as a run that rounds at random, as the judge has it
// (tests/judge/judging.py): by its own element, by the root mean square of its row, and by the mean share of
// a value, whichever is most; and by the bound that its type and the longest sum give for the value, or for
// the root mean square of all values.
std::vector<Reference> references(Spread truth, const std::vector<OutputSpec>& outputs);
// References that know nothing: each element must only be written and finite.
std::vector<Reference> unknown(const std::vector<OutputSpec>& outputs);

// Rounds at random: the same way for the same seed; seed 0 leaves everything as it is. Seeds 1 and 2, 3 and 4
// are pairs: what hardly moves by one of them moves far by the other, to the other side. Where a result
// depends on one rounding alone, two draws by chance would both be small for some elements of millions.
class RandomRounding {
 public:
  explicit RandomRounding(std::uint64_t seed) : seed_(seed) {}
  // Moves each value, but zeros, by up to `roundoff` of itself and by up to `underflow`.
  void move(std::span<double> values, double roundoff, double underflow = 0);

 private:
  std::uint64_t seed_, place_ = 0;
};
// Half the distance of neighbours relative to a value; of sums in f32 no less than what they do to their
// terms.
double roundoff(DType dtype);
// Half of the least number of f16: what rounding does to smaller ones. Those of other types no program sees.
double underflow(DType dtype);
// What a product in f32 of so many terms does to each: they may be added up one after another, and each of
// the partial sums, as large as the root of the terms so far, is rounded (lab/peers/truth.py).
double roundoff_of_sums(double terms);
// What the program gives once as it is, and how far so many runs that round at random are from that. A loss
// is one number, and where a square is taken of a gradient, elements of one row err unequally: each needs
// several tries of its own.
Spread spread_of(const std::function<HostArrays(RandomRounding& rounding)>& program, int runs);

// The graph that a function of such inputs records, as `context` would compile it.
ir::Graph recorded(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                   const std::vector<ir::Type>& inputs, Context& context);
std::vector<ir::Type> types_of(const std::vector<InputSpec>& inputs);
// Whether by_oracle() ends within seconds.
bool oracle_can(const ir::Graph& graph);
// The graph by ops::evaluate in float64, once exact and in so many runs with each node's values moved at
// random by up to its type's roundoff.
Spread by_oracle(const ir::Graph& graph, const HostArrays& inputs, int runs = 2);

}  // namespace tilewright::lab
