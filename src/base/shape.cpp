// Extents, strides and broadcasting.
#include <tilewright/base/shape.h>

#include <fmt/ranges.h>

#include <ostream>

namespace tilewright {

Index Shape::size() const {
  Index n = 1;
  for (Index e : extents_) n *= e;
  return n;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ",")); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

Strides row_major_strides(const Shape& shape) {
  Strides strides(static_cast<std::size_t>(shape.rank()));
  Index step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = step;
    step *= shape[axis];
  }
  return strides;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Index> extents(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    const int ia = axis - (rank - a.rank());
    const int ib = axis - (rank - b.rank());
    const Index ea = ia < 0 ? 1 : a[ia];
    const Index eb = ib < 0 ? 1 : b[ib];
    if (ea != eb && ea != 1 && eb != 1) return std::nullopt;
    extents[static_cast<std::size_t>(axis)] = ea == 1 ? eb : ea;
  }
  return Shape(std::move(extents));
}

std::optional<int> normalize_axis(Index axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace tilewright
