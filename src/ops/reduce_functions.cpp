// Building functions of reductions and scans: axes become sorted and non-negative, integers are summed in
// i64.
#include "ops/append.h"
#include "ops/promote.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::ops {

namespace {

Axes sorted_axes(std::string_view op, const Value& x, const Axes& axes) {
  Axes sorted;
  if (axes.empty())
    for (int i = 0; i < x.shape().rank(); ++i) sorted.push_back(i);
  for (Index axis : axes) sorted.push_back(axis_of(op, x, axis));
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    fail(x, fmt::format("{}: an axis is named twice", op));
  return sorted;
}

Value reduce(const ir::Op& op, Value x, const Axes& axes, Keep keep) {
  const Axes sorted = sorted_axes(op.name, x, axes);
  if (sorted.empty() && !tile::finds_place(*op.monoid)) return x;
  const Value reduced = append(op, {x}, {{"axes", sorted}});
  if (keep == Keep::no) return reduced;
  Shape kept = x.shape();
  for (Index axis : sorted) kept[static_cast<int>(axis)] = 1;
  return reshape(reduced, kept);
}

Value scan(const ir::Op& op, Value x, Index axis) {
  return append(op, {x}, {{"axis", Index{axis_of(op.name, x, axis)}}});
}

Value running_extreme(const ir::Op& op, Value x, Index axis) {
  const Value found = scan(op, cast(x, arithmetic_type(x.dtype())), axis);
  return is_bool(x.dtype()) ? ne(found, 0) : found;
}

Value as_bool(Value x) { return is_bool(x.dtype()) ? x : ne(x, 0); }

}  // namespace

Value sum(Value x, const Axes& axes, Keep keep) {
  return reduce(kSum, cast(x, sum_type(x.dtype())), axes, keep);
}
Value prod(Value x, const Axes& axes, Keep keep) {
  return reduce(kProd, cast(x, sum_type(x.dtype())), axes, keep);
}
Value max(Value x, const Axes& axes, Keep keep) {
  return is_bool(x.dtype()) ? any(x, axes, keep) : reduce(kMax, x, axes, keep);
}
Value min(Value x, const Axes& axes, Keep keep) {
  return is_bool(x.dtype()) ? all(x, axes, keep) : reduce(kMin, x, axes, keep);
}
Value any(Value x, const Axes& axes, Keep keep) { return reduce(kAny, as_bool(x), axes, keep); }
Value all(Value x, const Axes& axes, Keep keep) { return reduce(kAll, as_bool(x), axes, keep); }
Value argmax(Value x, Index axis, Keep keep) {
  return reduce(kArgmax, cast(x, arithmetic_type(x.dtype())), {axis}, keep);
}
Value argmin(Value x, Index axis, Keep keep) {
  return reduce(kArgmin, cast(x, arithmetic_type(x.dtype())), {axis}, keep);
}
Value cumsum(Value x, Index axis) { return scan(kCumsum, cast(x, sum_type(x.dtype())), axis); }
Value cumprod(Value x, Index axis) { return scan(kCumprod, cast(x, sum_type(x.dtype())), axis); }
Value cummax(Value x, Index axis) { return running_extreme(kCummax, x, axis); }
Value cummin(Value x, Index axis) { return running_extreme(kCummin, x, axis); }

}  // namespace tilewright::ops
