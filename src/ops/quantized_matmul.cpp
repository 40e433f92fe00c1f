// Products with weights of 8 and of 4 bits under scales of groups: the bytes are widened where they are
// multiplied, so that memory gives what is stored and no more.
#include "ops/append.h"
#include "ops/composites.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr Index kNibble = 4;

Value bytes_of_nibbles(std::string_view op, Value v) {
  if (v.dtype() != DType::i8 || v.shape().rank() == 0)
    fail(v, fmt::format("{}: wants a matrix of i8, got {}", op, to_string(v.type())));
  return v;
}

Shape with_last(const Shape& shape, Index last) {
  std::vector<Index> extents = shape.extents();
  extents.back() = last;
  return Shape(extents);
}

}  // namespace

Value pack_int4(Value values) {
  bytes_of_nibbles("pack_int4", values);
  const Index columns = values.shape()[values.shape().rank() - 1];
  if (columns % 2 != 0)
    fail(values, fmt::format("pack_int4: two columns go into a byte, got {}", to_string(values.type())));
  const Value low = slice_axis(values, -1, {.stop = columns / 2}),
              high = slice_axis(values, -1, {.start = columns / 2});
  return bit_or(bit_and(low, 15), shl(high, kNibble));
}

Value unpack_int4(Value packed) {
  bytes_of_nibbles("unpack_int4", packed);
  const int rank = packed.shape().rank();
  const Index columns = packed.shape()[rank - 1];
  // (.., half, columns / 2): which half is the shift that brings its nibble to the top.
  const Value wide = unsqueeze(packed, rank - 1);
  std::vector<Index> halves = wide.shape().extents(), ones(static_cast<std::size_t>(rank) + 1, 1);
  halves[static_cast<std::size_t>(rank) - 1] = ones[static_cast<std::size_t>(rank) - 1] = 2;
  const Value to_top = cast(kNibble - iota(*packed.graph, Shape(ones), rank - 1) * kNibble, DType::i8);
  const Value each =
      shr(shl(broadcast_to(wide, Shape(halves)), broadcast_to(to_top, Shape(halves))), kNibble);
  return reshape(each, with_last(packed.shape(), 2 * columns));
}

Value quantized_matmul(Value x, Value weights, Value scales) {
  const auto refuse = [&](std::string_view why) {
    fail(x, fmt::format("quantized_matmul: {}: x {}, weights {}, scales {}", why, to_string(x.type()),
                        to_string(weights.type()), to_string(scales.type())));
  };
  if (x.shape().rank() < 1 || !is_float(x.dtype())) refuse("wants rows of floats");
  if (weights.shape().rank() != 2 || weights.dtype() != DType::i8) refuse("wants weights as (K, N) of i8");
  if (scales.shape().rank() != 2 || !is_float(scales.dtype()))
    refuse("wants scales as (groups, N) of floats");
  const Index k = weights.shape()[0], n = weights.shape()[1], groups = scales.shape()[0];
  if (x.shape()[x.shape().rank() - 1] != k) refuse("x and weights differ in K");
  if (scales.shape()[1] != n) refuse("scales and weights differ in N");
  if (groups == 0 ? k != 0 : k % groups != 0) refuse("K is no multiple of the groups");
  const Shape result = with_last(x.shape(), n);
  const DType dtype = x.dtype(), sums = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Index rows = k == 0 ? result.size() / std::max<Index>(n, 1) : x.shape().size() / k;
  const Value flat = reshape(x, {rows, k}), scale = cast(scales, sums);
  if (groups <= 1) {
    const Value product = matmul(flat, cast(weights, dtype), sums);
    return reshape(cast(groups == 0 ? product : mul(product, scale), dtype), result);
  }
  const Index each = k / groups;
  // One row is a sum of products as the weights arrive: their scales stand where they do. Else each group's
  // sums are scaled, which are fewer than its weights.
  if (rows <= 1) {
    const Value spread = reshape(broadcast_to(unsqueeze(scale, 1), {groups, each, n}), {k, n});
    return reshape(cast(matmul(cast(flat, sums), mul(cast(weights, sums), spread)), dtype), result);
  }
  const Value blocks = transpose(reshape(flat, {rows, groups, each}), {1, 0, 2});
  const Value products = matmul(blocks, cast(reshape(weights, {groups, each, n}), dtype), sums);
  return reshape(cast(sum(mul(products, unsqueeze(scale, 1)), {0}), dtype), result);
}

}  // namespace tilewright::ops
