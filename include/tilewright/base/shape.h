// Shape: the extents of a tensor, outermost first; row-major strides; NumPy broadcasting.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

using Index = std::int64_t;
using Strides = std::vector<Index>;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Index> extents) : extents_(extents) {}
  explicit Shape(std::vector<Index> extents) : extents_(std::move(extents)) {}

  int rank() const { return static_cast<int>(extents_.size()); }  // the number of axes
  // The extent of an axis, 0 to rank() - 1, which is not checked.
  Index operator[](int axis) const& { return extents_[static_cast<std::size_t>(axis)]; }
  Index& operator[](int axis) & { return extents_[static_cast<std::size_t>(axis)]; }
  Index size() const;  // elements; 1 for rank 0
  // The extents, outermost first: as a list, and for loops over them.
  const std::vector<Index>& extents() const& { return extents_; }
  std::vector<Index> extents() && { return std::move(extents_); }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Index> extents_;
};

// "[4,8]"
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);
Strides row_major_strides(const Shape& shape);  // in elements
// NumPy broadcasting: align at the last axis, an extent of 1 stretches. Empty when the shapes do not meet.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Axis in [-rank, rank) → [0, rank); empty when out of range.
std::optional<int> normalize_axis(Index axis, int rank);

// a / b rounded up, and the first multiple of b that is no less than a; for a of at least 0, b of at least 1.
constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

}  // namespace tilewright
#pragma GCC visibility pop
