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

// Operands for a sample, drawn from the row's domain.
std::vector<ir::HostTensor> sample_operands(const ir::Op& op, const OpSample& sample, Random& random,
                                            Values values = Values::ordinary);

// One-node graph of the sample: an input per operand, the op's result as output.
ir::Graph sample_graph(const ir::Op& op, const OpSample& sample);

}  // namespace tilewright::test
