// Views that are written in others, and matrices of which a triangle is kept.
#include "ops/composites.h"

#include "ops/append.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::ops {

Value flatten(Value x, Index first, Index last) {
  const Shape& shape = x.shape();
  if (shape.rank() == 0) return reshape(x, {1});
  const int from = axis_of("flatten", x, first), to = axis_of("flatten", x, last);
  if (from > to)
    fail(x, fmt::format("flatten: axis {} is behind axis {} of {}", first, last, to_string(x.type())));
  std::vector<Index> extents(shape.begin(), shape.begin() + from);
  Index merged = 1;
  for (int axis = from; axis <= to; ++axis) merged *= shape[axis];
  extents.push_back(merged);
  extents.insert(extents.end(), shape.begin() + to + 1, shape.end());
  return reshape(x, Shape(extents));
}

Value moveaxis(Value x, Index from, Index to) {
  const int source = axis_of("moveaxis", x, from), destination = axis_of("moveaxis", x, to);
  std::vector<Index> perm;
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (axis != source) perm.push_back(axis);
  perm.insert(perm.begin() + destination, source);
  return transpose(x, perm);
}

Value roll(Value x, Index shift, Index axis) {
  const int at = axis_of("roll", x, axis);
  const Index extent = x.shape()[at];
  if (extent == 0) return x;
  const Index first = (extent - shift % extent) % extent;  // what comes first
  if (first == 0) return x;
  return concat({slice_axis(x, at, {.start = first}), slice_axis(x, at, {.stop = first})}, at);
}

Value repeat(Value x, Index count, Index axis) {
  const int at = axis_of("repeat", x, axis);
  if (count < 0) fail(x, fmt::format("repeat: the count is {}", count));
  Shape repeated = x.shape();
  std::vector<Index> apart = repeated.extents();
  apart.insert(apart.begin() + at + 1, count);
  ir::check_shape(Shape(apart));
  repeated[at] *= count;
  return reshape(broadcast_to(unsqueeze(x, at + 1), Shape(apart)), repeated);
}

Value repmat(Value x, const std::vector<Index>& counts) {
  const std::size_t rank = std::max(counts.size(), static_cast<std::size_t>(x.shape().rank()));
  std::vector<Index> from(rank - static_cast<std::size_t>(x.shape().rank()), 1), apart, one_apart, repeated;
  from.insert(from.end(), x.shape().begin(), x.shape().end());
  for (std::size_t i = 0; i < rank; ++i) {
    const Index count = i + counts.size() < rank ? 1 : counts[i + counts.size() - rank];
    if (count < 0) fail(x, fmt::format("repmat: the count {} is below 0", count));
    apart.insert(apart.end(), {count, from[i]});
    one_apart.insert(one_apart.end(), {1, from[i]});
    repeated.push_back(count);
  }
  ir::check_shape(Shape(apart));
  for (std::size_t i = 0; i < rank; ++i) repeated[i] *= from[i];
  return reshape(broadcast_to(reshape(x, Shape(one_apart)), Shape(apart)), Shape(repeated));
}

std::vector<Value> meshgrid(const std::vector<Value>& vectors) {
  std::vector<Index> extents;
  for (const Value& v : vectors) {
    if (v.shape().rank() != 1)
      fail(v, fmt::format("meshgrid: wants vectors, got {}; ravel() makes one", to_string(v.type())));
    extents.push_back(v.shape()[0]);
  }
  ir::check_shape(Shape(extents));
  std::vector<Value> grids;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::vector<Index> alone(vectors.size(), 1);
    alone[i] = extents[i];
    grids.push_back(broadcast_to(reshape(vectors[i], Shape(alone)), Shape(extents)));
  }
  return grids;
}

namespace {
// How far right of the main diagonal each element lies, for the last two axes of x.
Value right_of_diagonal(std::string_view op, Value x) {
  const Shape& shape = x.shape();
  const int rank = shape.rank();
  if (rank < 2)
    fail(x, fmt::format("{}: wants matrices (.., rows, columns), got {}", op, to_string(x.type())));
  const Shape matrix{shape[rank - 2], shape[rank - 1]};
  return iota(*x.graph, matrix, 1) - iota(*x.graph, matrix, 0);
}
}  // namespace

namespace {
// A diagonal outside every matrix is as good as any other there, and numbers may be taken from this one.
Index near(Index diagonal) {
  constexpr Index kFar = Index{1} << 62;
  return std::clamp(diagonal, -kFar, kFar);
}
}  // namespace

Value tril(Value x, Index diagonal) { return where(le(right_of_diagonal("tril", x), near(diagonal)), x, 0); }
Value triu(Value x, Index diagonal) { return where(ge(right_of_diagonal("triu", x), near(diagonal)), x, 0); }

}  // namespace tilewright::ops
