// Values for graph tests: random and odd tensors, comparison.
#pragma once

#include "ir/op.h"
#include "support/choices.h"

#include <string>

namespace tilewright::test {

enum class Values {
  ordinary,  // uniform in the domain
  special,   // also, seldom, ±0, ±inf and NaN: what any order of adding and multiplying treats alike
  odd,       // also ±0, ±inf, NaN, subnormals, the largest and lowest numbers of the type
  tiny,      // ±0, subnormals and the smallest normal numbers of the type
  large      // ±1, the largest and the lowest number of the type once each: no order of adding them overflows
};
// Floats are values of the dtype exactly; integers and bool lie in the domain clipped to the type.
ir::HostTensor random_host(const ir::Type& type, const ir::Domain& domain, Random& random,
                           Values values = Values::ordinary);
// Integers in [low, high].
ir::HostTensor random_indices(const ir::Type& type, Index low, Index high, Random& random);

// Equal NaNs and infinities; numbers within `relative` of the larger magnitude plus `absolute`. Empty when
// they agree, else what differs first.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};
std::string difference(const ir::HostTensor& got, const ir::HostTensor& wanted,
                       const Tolerance& tolerance = {});

}  // namespace tilewright::test
