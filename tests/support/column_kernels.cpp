// See column_kernels.h.
#include "support/column_kernels.h"

namespace tilewright::tile::samples {

Kernel column_epilogue_reductions(const Columns& c) {
  Builder k("columns");
  const View x = k.view("x", DType::bf16, {c.rows, c.columns}), y = k.view("y", DType::f32, {c.columns}),
             z = k.view("z", DType::f32, {c.columns});
  const Value start = k.program_id(0) * c.block_columns;
  const std::vector<Index> shape = {c.block_rows, c.block_columns};
  const std::vector<Value> last = k.loop(
      Index{0}, c.rows, c.block_rows, {k.literal(DType::f32, 0.0, shape), k.literal(DType::f32, 0.0, shape)},
      [&](Value i, const std::vector<Value>& carried) {
        const Value t = k.cast(k.load(x, {i, start}, {.shape = shape, .fill = 0.0}), DType::f32);
        return std::vector{carried[0] + t, carried[1] + t * t};
      });
  const Value sum = k.reduce(Monoid::sum, last[0], 0), squares = k.reduce(Monoid::sum, last[1], 0);
  k.store(y, {start}, sum * 0.5, {.bounded = true});
  k.store(z, {start}, squares + sum, {.bounded = true});
  return k.finish({{{c.columns, c.block_columns}}});
}

Kernel sums_of_rounds(const Columns& c) {
  Builder k("rounds");
  const View x = k.view("x", DType::f32, {c.rows, c.columns}), y = k.view("y", DType::f32, {c.columns});
  const Value start = k.program_id(0) * c.block_columns;
  const std::vector<Value> last =
      k.loop(Index{0}, c.rows, c.block_rows, {k.literal(DType::f32, 0.0, {c.block_columns})},
             [&](Value i, const std::vector<Value>& carried) {
               const Value t = k.load(x, {i, start}, {.shape = {c.block_rows, c.block_columns}, .fill = 0.0});
               return std::vector{carried[0] * 0.5 + k.reduce(Monoid::max, t, 0)};
             });
  k.store(y, {start}, last[0], {.bounded = true});
  return k.finish({{{c.columns, c.block_columns}}});
}

}  // namespace tilewright::tile::samples
