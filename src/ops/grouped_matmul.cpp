// Products with a matrix for each group of rows, as mixtures of experts need them: which matrix a block of
// rows takes is data, its place is not.
#include "ops/append.h"
#include "ops/composites.h"

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

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
  return reshape(y, {rows, w.shape()[2]});
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
  return where(lt(row, reshape(counts, {groups, 1, 1})), matmul(x, w), 0);
}

}  // namespace tilewright::ops
