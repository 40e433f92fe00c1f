// Sample calls of each op row, so that the tests of values, gradients and parity are generated from the op
// table.
#pragma once

#include "support/host_values.h"

#include <vector>

namespace tilewright::test {

// Operand types and attributes that the row accepts.
struct OpSample {
  std::vector<ir::Type> operands;
  ir::Attrs attrs;
  Index index_extent = 0;  // take and its kin: indices are drawn from [-1, index_extent]
};

// Calls of `op` whose main operands are of `dtype`: rank 0 to 6, empty, size 1, primes. Empty for a dtype
// that the row refuses, and for `input`.
std::vector<OpSample> op_samples(const ir::Op& op, DType dtype);

// How the operands lie in memory: as they are, or as views of the graph's inputs, so that their elements are
// not neighbours.
enum class Placement {
  whole,
  transposed,  // axes in reverse order
  sliced       // every second element, backwards, of inputs that begin and end beyond it
};
constexpr Placement kPlacements[] = {Placement::whole, Placement::transposed, Placement::sliced};
// The sample with the types of the inputs that its operands are views of.
OpSample placed(const OpSample& sample, Placement placement);

// Operands for a sample (or the inputs of a placed one), drawn from the row's domain.
std::vector<ir::HostTensor> sample_operands(const ir::Op& op, const OpSample& sample, Random& random,
                                            Values values = Values::ordinary);

// The op alone (and the views that `placement` wants): an input per operand, the op's result as output.
ir::Graph sample_graph(const ir::Op& op, const OpSample& sample, Placement placement = Placement::whole);

}  // namespace tilewright::test
