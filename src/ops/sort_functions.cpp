// Building functions of sorting.
#include "ops/append.h"

#include <fmt/format.h>

namespace tilewright::ops {

Value sorting_positions(Value x, Index axis, Order order) {
  const Value key = is_bool(x.dtype()) ? cast(x, DType::u8) : x;
  return append(kArgsort, {key},
                {{"axis", Index{axis_of("argsort", x, axis)}}, {"order", std::string(name(order))}});
}

Value argsort(Value x, Index axis, Order order) {
  return cast(sorting_positions(x, axis, order), DType::i64);
}

Value sort(Value x, Index axis, Order order) {
  return take_along(x, sorting_positions(x, axis_of("sort", x, axis), order), axis);
}

std::pair<Value, Value> topk(Value x, Index k, Index axis) {
  const int at = axis_of("topk", x, axis);
  if (k < 0 || k > x.shape()[at])
    fail(x, fmt::format("topk: k is {}, axis {} of {} has {} elements", k, axis, to_string(x.type()),
                        x.shape()[at]));
  const Value first = slice_axis(sorting_positions(x, at, Order::descending), at, {.start = 0, .stop = k});
  return {take_along(x, first, at), cast(first, DType::i64)};
}

}  // namespace tilewright::ops
