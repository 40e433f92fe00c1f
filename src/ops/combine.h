// How reductions and scans combine two numbers, and the walk along one axis, which sorting takes as well.
// Only for ops/*.cpp.
#pragma once

#include "ops/row_parts.h"

namespace tilewright::ops {

inline constexpr auto plus = [](auto a, auto b) { return modular(a) + modular(b); };
inline constexpr auto times = [](auto a, auto b) { return modular(a) * modular(b); };
inline constexpr auto larger = [](auto a, auto b) { return a > b || a != a ? a : b; };
inline constexpr auto smaller = [](auto a, auto b) { return a < b || a != a ? a : b; };

// Calls body(first element, stride) for each line along `axis`.
template <class Body>
void for_each_line(const Shape& shape, int axis, const Body& body) {
  const Index stride = row_major_strides(shape)[static_cast<std::size_t>(axis)];
  const Index extent = shape[axis];
  if (shape.size() == 0) return;
  for (Index outer = 0; outer < shape.size() / (extent * stride); ++outer)
    for (Index inner = 0; inner < stride; ++inner) body(outer * extent * stride + inner, stride);
}

}  // namespace tilewright::ops
