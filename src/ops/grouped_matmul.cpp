// Products with a matrix for each group of rows, as mixtures of experts need them: which matrix a block of
// rows takes is data, its place is not.
#include "ops/append.h"
#include "ops/composites.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

constexpr Index kRaggedShift = 7, kRaggedRows = 1 << kRaggedShift;  // of a block: a tile's on tensor cores

// What both forms want of `w` and of the integers beside it.
void check_groups(std::string_view op, Value x, Value w, Value which) {
  const auto refuse = [&](std::string_view why) {
    fail(x, fmt::format("{}: {}: x {}, w {}", op, why, to_string(x.type()), to_string(w.type())));
  };
  if (w.shape().rank() != 3) refuse("wants w as (groups, K, N)");
  if (x.shape()[x.shape().rank() - 1] != w.shape()[1]) refuse("x and w differ in K");
  if (which.shape().rank() != 1 || !is_integer(which.dtype()))
    fail(x, fmt::format("{}: wants a list of integers beside them, got {}", op, to_string(which.type())));
}

// The product of the rows (groups, rows, 1) in use, else zeros: on either side of the product, so that
// neither it nor its gradients multiply what the others hold (unmasked_rows, passes/graph/simplify_masks.cpp,
// takes the inner choice away where the outer one is enough).
Value product_of_rows(Value x, Value w, Value used) { return where(used, matmul(where(used, x, 0), w), 0); }

}  // namespace

Value grouped_matmul(Value x, Value w, Value group_of_block) {
  if (x.shape().rank() != 2)
    fail(x, fmt::format("grouped_matmul: wants x as (rows, K), got {}", to_string(x.type())));
  check_groups("grouped_matmul", x, w, group_of_block);
  const Index rows = x.shape()[0], blocks = group_of_block.shape()[0];
  if (blocks == 0 ? rows != 0 : rows % blocks != 0)
    fail(x, fmt::format("grouped_matmul: {} rows are no multiple of {} blocks", rows, blocks));
  const Index each = blocks == 0 ? 1 : rows / blocks;
  const Value y = matmul(reshape(x, {blocks, each, x.shape()[1]}), take(w, group_of_block, 0));
  // Zeros of no matrix times what x holds there would be NaN of infinities.
  const Value group = reshape(cast(group_of_block, DType::i64), {blocks, 1, 1});
  const Value is_group = bit_and(ge(group, 0), lt(group, w.shape()[0]));
  return reshape(where(is_group, y, 0), {rows, w.shape()[2]});
}

// Groups that end anywhere, as blocks that begin where a group does: of each block the group and the first
// row are data, and so is the place in the blocks that each row of the result is read from.
Value ragged_matmul(Value x, Value w, Value ends) {
  if (x.shape().rank() != 2)
    fail(x, fmt::format("ragged_matmul: wants x as (rows, K), got {}", to_string(x.type())));
  check_groups("ragged_matmul", x, w, ends);
  const Index rows = x.shape()[0], groups = w.shape()[0], n = w.shape()[2];
  if (ends.shape()[0] != groups)
    fail(x, fmt::format("ragged_matmul: wants an end for each group: w {}, ends {}", to_string(w.type()),
                        to_string(ends.type())));
  ir::Graph& graph = *x.graph;
  const Index blocks = rows == 0 || groups == 0 ? 0 : ceil_div(rows, kRaggedRows) + groups;
  const Value end = cast(ends, DType::i64), zero = iota(graph, {1}, 0);
  const Value start = groups == 0 ? end : concat({zero, slice_axis(end, 0, {.stop = groups - 1})}, 0);
  const Value each = shr(end - start + (kRaggedRows - 1), kRaggedShift), last = cumsum(each, 0),
              first = last - each;
  // How many of the groups end at or before a place: the group that it belongs to, or as many as there are.
  const auto group_at = [&](Value place, Value of) {
    const Index count = place.shape()[0];
    const Value ended = ge(broadcast_to(reshape(place, {count, 1}), {count, groups}),
                           broadcast_to(reshape(of, {1, groups}), {count, groups}));
    return sum(cast(ended, DType::i64), {1});
  };
  const Value block = iota(graph, {blocks}, 0), group = group_at(block, last);
  const Value begin = take(start, group, 0) + (block - take(first, group, 0)) * kRaggedRows;
  const Shape places{blocks, kRaggedRows};
  const Value row_of = broadcast_to(reshape(begin, {blocks, 1}), places) + iota(graph, places, 1);
  // A block's rows behind its group's end belong to the next one.
  const Value used = lt(row_of, broadcast_to(reshape(take(end, group, 0), {blocks, 1}), places));
  const Value products =
      product_of_rows(take(x, row_of, 0), take(w, group, 0), reshape(used, {blocks, kRaggedRows, 1}));
  const Value row = iota(graph, {rows}, 0), owner = group_at(row, end);
  const Value place = take(first, owner, 0) * kRaggedRows + row - take(start, owner, 0);
  const Value inside = where(lt(owner, groups), place, -1);  // behind the last group: zeros
  return take(reshape(products, {blocks * kRaggedRows, n}), inside, 0);
}

Value masked_matmul(Value x, Value w, Value counts) {
  if (x.shape().rank() != 3)
    fail(x, fmt::format("masked_matmul: wants x as (groups, rows, K), got {}", to_string(x.type())));
  check_groups("masked_matmul", x, w, counts);
  const Index groups = x.shape()[0], rows = x.shape()[1];
  if (w.shape()[0] != groups || counts.shape()[0] != groups)
    fail(x, fmt::format("masked_matmul: the groups differ: x {}, w {}, counts {}", to_string(x.type()),
                        to_string(w.type()), to_string(counts.type())));
  const Value row = iota(*x.graph, {1, rows, 1}, 1);
  return product_of_rows(x, w, lt(row, reshape(counts, {groups, 1, 1})));
}

}  // namespace tilewright::ops
