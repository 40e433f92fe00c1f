// An operation some of whose inputs it does not use, as they are named below.
#pragma once

#include "support/limit_check.h"

#include "ops/functions.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace tilewright::test {

struct PoisonCase {
  std::string name;
  std::function<ir::Value(const std::vector<ir::Value>&)> apply;
  std::vector<ir::HostTensor> inputs;
  // The elements that nothing may read, of those inputs that are floats.
  std::vector<std::function<bool(std::size_t)>> unused;
};

namespace poison {

inline ir::HostTensor floats(DType dtype, const Shape& shape, int seed) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(shape.size()));
  for (Index i = 0; i < shape.size(); ++i)
    numbers.push_back(std::sin(1.7 * static_cast<double>(i) + seed) * 0.75);
  return host_floats(dtype, shape, numbers);
}
inline ir::HostTensor integers(const std::vector<std::int64_t>& numbers) {
  return {.type = {DType::i64, {static_cast<Index>(numbers.size())}}, .f = {}, .i = numbers};
}
inline bool never(std::size_t) { return false; }

}  // namespace poison
}  // namespace tilewright::test
