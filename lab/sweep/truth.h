// References of drawn programs: float64 results with how far rounding at random takes each element, from a
// peer or from the oracle of graphs.
#pragma once

#include <vector>

#include "harness/run/workload.h"
#include "ir/graph.h"
#include "pairs/host_rows.h"

namespace tilewright::sweep {

// Outputs, and then as many arrays of how far elements were from their places in runs that round at random.
using Spread = std::vector<std::vector<double>>;

// A result may be kFactor times as far off as a run that rounds at random, as the judge has it
// (tests/judge/judging.py): by its own element, by the root mean square of its row, and by the mean share of
// a value, whichever is most; and by the bound that its type and the longest sum give for the value, or for
// the root mean square of all values.
std::vector<lab::Reference> references(Spread truth, const std::vector<lab::OutputSpec>& outputs);
// References that know nothing: each element must only be written and finite.
std::vector<lab::Reference> unknown(const std::vector<lab::OutputSpec>& outputs);

// Whether by_oracle() ends within seconds.
bool oracle_can(const ir::Graph& graph);
// The graph by ops::evaluate in float64, once exact and twice with each node's values moved at random by up
// to its type's roundoff.
Spread by_oracle(const ir::Graph& graph, const lab::HostArrays& inputs);

}  // namespace tilewright::sweep
