// See scaled_kernels.h.
#include "support/scaled_kernels.h"

#include <fmt/format.h>

namespace tilewright::tile::samples {

namespace {

constexpr Index kScaleBlock = 128;

}  // namespace

std::string to_string(const ScaledKernel& s) {
  return fmt::format("{} {}x{}x{} blocks {}x{}{}", name(s.dtype), s.m, s.n, s.k, s.block_m, s.block_n,
                     s.one_scale ? ", one scale" : "");
}

Kernel scaled_product(const ScaledKernel& s) {
  Builder k("scaled_product");
  k.constant("BM", s.block_m), k.constant("BN", s.block_n);
  const Index blocks = s.k / kScaleBlock, wide = ceil_div(s.n, kScaleBlock);
  const View a = k.view("a", s.dtype, {s.m, s.k}), b = k.view("b", s.dtype, {s.n, s.k}),
             scale_a = k.view("scale_a", DType::f32, {blocks, s.m}),
             scale_b = k.view("scale_b", DType::f32, {wide, blocks}), c = k.view("c", s.out, {s.m, s.n});
  const Value column = k.program_id(0) * s.block_n, row = k.program_id(1) * s.block_m;
  const Value column_block = s.block_n == kScaleBlock ? k.program_id(0) : column / kScaleBlock;
  const bool ragged = s.m % s.block_m != 0 || s.n % s.block_n != 0;
  const auto block = [&](View view, Value i, Value at, Index rows) {
    LoadOptions options{.shape = {rows, kScaleBlock}};
    if (ragged) options.fill = 0.0;
    return k.load(view, {i, at}, options);
  };
  const auto scales = [&](const Operand& at) {
    LoadOptions options{.shape = {s.block_m}};
    if (ragged) options.fill = 0.0;
    const Value of_columns = k.load(scale_b, {column_block, at}, {});
    return k.expand(k.load(scale_a, {at, row}, options), 1) * of_columns;
  };
  std::optional<Value> first;
  if (s.one_scale) first = scales(Index{0});
  const Value zero = k.literal(DType::f32, 0.0, {s.block_m, s.block_n});
  const auto sum = k.loop(Index{0}, blocks, 1, {zero}, [&](Value i, const std::vector<Value>& carried) {
    const Value at = i * kScaleBlock;
    const Value by = first ? *first : scales(i);
    const Value product =
        k.dot(block(a, row, at, s.block_m), k.transpose(block(b, column, at, s.block_n)), zero);
    return std::vector{carried[0] + product * by};
  });
  k.store(c, {row, column}, k.cast(sum[0], s.out), {.bounded = ragged});
  return k.finish({{{s.n, s.block_n}}, {{s.m, s.block_m}}});
}

}  // namespace tilewright::tile::samples
