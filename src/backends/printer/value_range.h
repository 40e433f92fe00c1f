// Value ranges: what is known about a kernel's integer values before it runs: an interval and a divisor.
// Printers use it to compute in 32 bits, to drop bounds checks and to widen accesses.
#pragma once

#include <tilewright/tile/kernel.h>

#include <limits>
#include <vector>

namespace tilewright::printer {

struct ValueRange {
  Index low = std::numeric_limits<Index>::min();
  Index high = std::numeric_limits<Index>::max();
  Index divisor = 1;  // every element is a multiple of it; 0 for the constant 0
  bool within(Index a, Index b) const { return low >= a && high <= b; }
  bool fits_i32() const {
    return within(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
  }
  bool bounded() const {  // arithmetic that led here did not wrap
    return low != std::numeric_limits<Index>::min() && high != std::numeric_limits<Index>::max();
  }
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

ValueRange range_of_number(Index value);
// One entry per value of the kernel; values that are not integers have the default.
std::vector<ValueRange> value_ranges(const tile::Kernel& kernel);
// Whether each value may differ between two programs of a launch.
std::vector<bool> differ_between_programs(const tile::Kernel& kernel);
// An extent or stride; parameters that are extents are at least 0.
ValueRange range_of(const tile::Dim& dim);

}  // namespace tilewright::printer
