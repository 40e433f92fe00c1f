// Order: which way elements are sorted.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright {

// A NaN counts as the largest element: it is the last of ascending ones, and the first of descending ones.
// Equal elements, -0 and +0 among them, keep their order either way.
enum class Order { ascending, descending };

constexpr std::string_view name(Order order) {  // "ascending" or "descending"
  return order == Order::ascending ? "ascending" : "descending";
}

}  // namespace tilewright
#pragma GCC visibility pop
