// Error bounds of reductions, scans and sorted positions, for any order in which elements are combined.
#include <algorithm>

#include "backends/reference/bounds_context.h"

namespace tilewright::reference {

using tile::Monoid;
using tile::OpKind;

namespace {

// What a float combination of n elements with errors may be off by; elements are added one at a time.
class Combination {
 public:
  Combination(Monoid monoid, DType dtype) : monoid_(monoid), dtype_(dtype) {}

  void add(double x, double error) {
    const double size = std::abs(x);
    worst_ = std::max(worst_, error);
    errors_ += error;
    magnitude_ += std::isfinite(size) ? size : 0;
    product_ *= size;
    product_with_errors_ *= size + error;
    largest_product_ *= std::max(1.0, size + error);
    ++count_;
  }

  double error(double& y) const {
    if (!std::isfinite(worst_)) return kInfinity;
    // Infinity and NaN are exact, and win; but some order may first overflow to the other infinity.
    if (!std::isfinite(y))
      return monoid_ == Monoid::sum && std::isinf(y) && magnitude_ + errors_ > max_finite(dtype_) ? kInfinity
                                                                                                  : 0;
    // In f64 the reference rounds too.
    const double roundings = (count_ - 1) * unit_roundoff(dtype_) * (dtype_ == DType::f64 ? 2 : 1);
    switch (monoid_) {
      case Monoid::sum:
        if (magnitude_ + errors_ > max_finite(dtype_)) return kInfinity;  // some order may overflow
        return settle(dtype_, y, errors_ + roundings * (magnitude_ + errors_));
      case Monoid::prod: {
        // A part that underflows loses up to the smallest number, which the rest may then enlarge.
        const double floor = (count_ - 1) * min_subnormal(dtype_) * largest_product_;
        return settle(dtype_, y,
                      product_with_errors_ - product_ + 1.1 * roundings * product_with_errors_ + floor);
      }
      default:
        return worst_;
    }
  }

 private:
  Monoid monoid_;
  DType dtype_;
  double count_ = 0, worst_ = 0, errors_ = 0, magnitude_ = 0, product_ = 1, product_with_errors_ = 1,
         largest_product_ = 1;
};

void along_axis_float(const Context& c, const AxisWalk& walk) {
  const Tile& from = c.operand(0);
  Tile& result = c.result();
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      Combination combination(c.op.monoid, c.type(0).dtype);
      for (Index j = 0; j < walk.length; ++j) {
        const auto n = static_cast<std::size_t>(walk.at(o, j, i));
        combination.add(from.f[n], from.error[n]);
        if (c.op.kind == OpKind::scan) result.error[n] = combination.error(result.f[n]);
      }
      const auto n = static_cast<std::size_t>(o * walk.inner + i);
      if (c.op.kind == OpKind::reduce) result.error[n] = combination.error(result.f[n]);
    }
}

// Decided when no other element can overtake the one that was found.
void extreme_index(const Context& c, const AxisWalk& walk) {
  const Tile& from = c.operand(0);
  Tile& result = c.result();
  const bool real = is_float(c.type(0).dtype);
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      const auto n = static_cast<std::size_t>(o * walk.inner + i);
      const auto best = static_cast<std::size_t>(walk.at(o, result.i[n], i));
      bool decided = std::isfinite(from.error[best]);
      for (Index j = 0; j < walk.length; ++j) {
        const auto other = static_cast<std::size_t>(walk.at(o, j, i));
        const double slack = from.error[best] + from.error[other];
        if (other == best || slack == 0) continue;
        decided =
            decided && real && std::isfinite(slack) && !(std::abs(from.f[best] - from.f[other]) <= slack);
      }
      result.error[n] = decided ? 0 : kInfinity;
    }
}

// A place is decided where its element differs from those of the places beside it by more than both may err:
// all that stand before it then belong there, and so do all behind it.
void sorted_positions(const Context& c, const AxisWalk& walk) {
  const Tile& from = c.operand(0);
  Tile& result = c.result();
  const bool real = is_float(c.type(0).dtype);
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      double widest = 0;
      for (Index j = 0; j < walk.length; ++j)
        widest = std::max(widest, from.error[static_cast<std::size_t>(walk.at(o, j, i))]);
      if (widest == 0) continue;
      const auto apart = [&](Index j) {  // elements of the places j and j + 1
        const auto element = [&](Index place) {
          const Index at = result.i[static_cast<std::size_t>(walk.at(o, place, i))];
          return from.f[static_cast<std::size_t>(walk.at(o, at, i))];
        };
        return j < 0 || j + 1 >= walk.length || std::abs(element(j + 1) - element(j)) > 2 * widest;
      };
      for (Index j = 0; j < walk.length; ++j)
        if (!real || !std::isfinite(widest) || !apart(j - 1) || !apart(j))
          result.error[static_cast<std::size_t>(walk.at(o, j, i))] = kInfinity;
    }
}

void along_axis_whole(const Context& c, const AxisWalk& walk) {
  const Tile& from = c.operand(0);
  Tile& result = c.result();
  const DType dtype = c.result_type().dtype;
  const std::int64_t deciding = c.op.monoid == Monoid::logical_and ? 0 : 1;
  const bool logical = is_bool(dtype);
  for (Index o = 0; o < walk.outer; ++o)
    for (Index i = 0; i < walk.inner; ++i) {
      bool exact = true, decided = false;
      for (Index j = 0; j < walk.length; ++j) {
        const auto n = static_cast<std::size_t>(walk.at(o, j, i));
        exact = exact && from.error[n] == 0;
        decided = decided || (logical && from.error[n] == 0 && from.i[n] == deciding);
        if (c.op.kind == OpKind::scan) result.error[n] = exact ? 0 : kInfinity;
      }
      const auto n = static_cast<std::size_t>(o * walk.inner + i);
      if (c.op.kind == OpKind::reduce) result.error[n] = exact || decided ? 0 : undecided(dtype);
    }
}

}  // namespace

void propagate_along_axis(const Context& c) {
  const AxisWalk walk = walk_axis(c.type(0), c.op.axis);
  if (c.op.kind == OpKind::argsort) return sorted_positions(c, walk);
  if (tile::finds_place(c.op.monoid)) return extreme_index(c, walk);
  is_float(c.type(0).dtype) ? along_axis_float(c, walk) : along_axis_whole(c, walk);
}

}  // namespace tilewright::reference
