// Axes: which axes of a tensor a function works along, as a user writes them: one number or a list.
#pragma once

#include <tilewright/base/shape.h>

#include <concepts>
#include <initializer_list>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// sum(x, 0), sum(x, {0, 2}), sum(x, axes). A negative axis counts from the last; none at all, sum(x) and
// sum(x, {}), are all axes.
class Axes {
 public:
  Axes() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Axes(T axis) : axes_{static_cast<Index>(axis)} {}
  Axes(std::initializer_list<Index> axes) : axes_(axes) {}
  Axes(std::vector<Index> axes) : axes_(std::move(axes)) {}
  // As they were given, negative ones too.
  operator const std::vector<Index>&() const { return axes_; }

 private:
  std::vector<Index> axes_;
};

// Whether reduced axes stay, with one element each.
enum class Keep { no, yes };

}  // namespace tilewright
#pragma GCC visibility pop
