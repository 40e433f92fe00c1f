// Products of quantised operands with their scales. What belongs to rows and columns of the result is
// arithmetic behind the product; what changes along k is a sum of products of blocks, each with its scale.
#include "ops/append.h"
#include "ops/composites.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tilewright::ops {

namespace {

Index extent(Value v, int from_last) { return v.shape()[v.shape().rank() - from_last]; }

Value with_rank(Value v, int rank) {
  while (v.shape().rank() < rank) v = unsqueeze(v, 0);
  return v;
}

// One scale for the whole axis, for each element of it, or for each block of kScaleBlock.
bool covers(Index scales, Index elements) {
  return scales == 1 || scales == elements || scales == ceil_div(elements, kScaleBlock);
}

// Along k scales are one, or one a block.
void check_scale(Value operand, Value scale, int k_from_last) {
  const Index k = extent(operand, k_from_last), rows = extent(operand, 3 - k_from_last);
  const bool fits =
      is_float(scale.dtype()) && scale.shape().rank() >= 2 && covers(extent(scale, 3 - k_from_last), rows) &&
      (extent(scale, k_from_last) == 1 || extent(scale, k_from_last) == ceil_div(k, kScaleBlock));
  if (fits) return;
  fail(operand,
       fmt::format("scaled_matmul: a scale for each block of {} along k, and for each row, block of {} "
                   "rows, or all of them: operand {}, scale {}",
                   kScaleBlock, kScaleBlock, to_string(operand.type()), to_string(scale.type())));
}

// A scale for each element of the axis, or one for all.
Value spread(Value scale, int from_last, Index elements) {
  const Index scales = extent(scale, from_last);
  if (scales == 1 || scales == elements) return scale;
  const Index axis = scale.shape().rank() - from_last;
  Value wide = unsqueeze(scale, axis + 1);
  std::vector<Index> shape = wide.shape().extents();
  shape[static_cast<std::size_t>(axis) + 1] = kScaleBlock;
  wide = broadcast_to(wide, Shape(shape));
  shape.erase(shape.begin() + axis + 1);
  shape[static_cast<std::size_t>(axis)] = scales * kScaleBlock;
  return slice_axis(reshape(wide, Shape(shape)), axis, {.stop = elements});
}

// The axis in blocks, which come first: (.., K, ..) as (K / block, .., block, ..).
Value blocks_first(Value v, int from_last, Index block) {
  const Index rank = v.shape().rank(), axis = rank - from_last;
  const Index length = v.shape()[static_cast<int>(axis)], blocks = ceil_div(length, block);
  if (blocks * block != length) v = pad_axis(v, axis, 0, blocks * block - length);
  std::vector<Index> shape = v.shape().extents();
  shape[static_cast<std::size_t>(axis)] = block;
  shape.insert(shape.begin() + axis, blocks);
  std::vector<Index> order(static_cast<std::size_t>(rank) + 1);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
  return transpose(reshape(v, Shape(shape)), order);
}

}  // namespace

Value scaled_matmul(Value a, Value scale_a, Value b, Value scale_b) {
  if (a.shape().rank() < 2 || b.shape().rank() < 2)
    fail(a, fmt::format("scaled_matmul: wants matrices, got {} and {}", to_string(a.type()),
                        to_string(b.type())));
  if (extent(a, 1) != extent(b, 2))
    fail(a,
         fmt::format("scaled_matmul: inner dims differ, {} x {}", to_string(a.type()), to_string(b.type())));
  check_scale(a, scale_a, 1);
  check_scale(b, scale_b, 2);
  const bool wide = scale_a.dtype() == DType::f64 || scale_b.dtype() == DType::f64;
  const DType dtype = wide ? DType::f64 : DType::f32;
  const bool floats = is_float(a.dtype()) || is_float(b.dtype());
  const auto product = [&](Value x, Value y) {
    return cast(matmul(x, y, floats ? std::optional(dtype) : std::nullopt), dtype);
  };
  Value rows = spread(cast(scale_a, dtype), 2, extent(a, 2)),
        columns = spread(cast(scale_b, dtype), 1, extent(b, 1));
  if (extent(scale_a, 1) == 1 && extent(scale_b, 2) == 1) return mul(product(a, b), mul(rows, columns));
  const int rank = std::max(a.shape().rank(), b.shape().rank());
  const Value factor =
      mul(blocks_first(with_rank(rows, rank), 1, 1), blocks_first(with_rank(columns, rank), 2, 1));
  const Value sums = product(blocks_first(with_rank(a, rank), 1, kScaleBlock),
                             blocks_first(with_rank(b, rank), 2, kScaleBlock));
  return sum(mul(sums, factor), {0});
}

}  // namespace tilewright::ops
