// A tensor of intervals: the lowest and the highest value that each element may have.
#pragma once

#include "ir/op.h"

#include <cmath>
#include <limits>
#include <vector>

namespace tilewright::test {

inline constexpr double kEndless = std::numeric_limits<double>::infinity();

// Both NaN where an element certainly is NaN.
struct IntervalTensor {
  ir::HostTensor low, high;

  // Intervals without bounds: nothing is known.
  static IntervalTensor unknown(const ir::Type& type);

  bool is_float() const { return tilewright::is_float(low.type.dtype); }
  std::size_t size() const { return low.f.size() + low.i.size(); }  // one of them is empty
  bool is_exact(std::size_t i) const;
  bool all_exact() const;
  // Integers that are one of many count as unknown: few are tried one by one.
  bool is_unknown(std::size_t i) const;
  bool any_unknown() const;
  void forget(std::size_t i);
  // Forgets intervals with an end that is NaN, as a difference of infinite ends is: the values need not be.
  void forget_nans();

  // Values to try a function at: of floats both ends, of integers each that is known to be possible.
  std::int64_t tries() const;
  ir::HostTensor tried(std::int64_t number) const;

  // The largest magnitudes, middles and half lengths, of floats.
  ir::HostTensor magnitude() const;
  ir::HostTensor middle() const;
  ir::HostTensor half() const;

  // Takes in what a function gave of another try, the first of which sets the ends. NaNs are counted instead.
  void include(const ir::HostTensor& value, bool first, std::vector<int>& nans);
};

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// The row's own function of some values that the operands may have.
ir::HostTensor evaluate_at(const ir::Node& node, const std::vector<ir::HostTensor>& operands);

// The intervals of a pointwise op or a cast, without its own error.
IntervalTensor pointwise_intervals(const ir::Node& node, const std::vector<const IntervalTensor*>& operands);

}  // namespace tilewright::test
