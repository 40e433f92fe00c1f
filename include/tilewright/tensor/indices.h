// What stands in the brackets of x[...]: positions, slices, an ellipsis, new axes and an index tensor, with
// NumPy's meaning.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// Python's start:stop:step along one axis: negative positions count from the end, both are clamped.
struct SliceRange {
  std::optional<Index> start = {};
  std::optional<Index> stop = {};
  Index step = 1;
};

// As Python's slice(): the whole axis, up to `stop`, from `start` up to `stop`. std::nullopt is Python's
// None: slice(std::nullopt, std::nullopt, -1) goes backward.
inline SliceRange slice() { return {}; }
inline SliceRange slice(std::optional<Index> stop) { return {.stop = stop}; }
inline SliceRange slice(std::optional<Index> start, std::optional<Index> stop, Index step = 1) {
  return {start, stop, step};
}

struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};  // as many whole axes as the other indices leave
inline constexpr NewAxis newaxis{};    // a new axis of one element

// One of them.
struct IndexItem {
  enum class Kind { position, range, rest, new_axis, tensor };
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  IndexItem(T at) : kind(Kind::position), position(static_cast<Index>(at)) {}
  IndexItem(const SliceRange& all) : kind(Kind::range), range(all) {}
  IndexItem(Ellipsis) : kind(Kind::rest) {}
  IndexItem(NewAxis) : kind(Kind::new_axis) {}
  IndexItem(const Tensor& at) : kind(Kind::tensor), tensor(at) {}
  // Which of the others counts. A std::variant of them is compiled in each source that includes this.
  Kind kind;
  Index position = 0;
  SliceRange range = {};
  Tensor tensor = {};
};

// All of them, with the line they stand on.
struct Indices {
  template <std::convertible_to<IndexItem> T>
  Indices(const T& one, const Location& l = Location::current()) : where(l) {
    items.emplace_back(one);
  }
  Indices(std::initializer_list<IndexItem> all, const Location& l = Location::current());
  std::vector<IndexItem> items;
  Location where;
};

}  // namespace tilewright
#pragma GCC visibility pop
