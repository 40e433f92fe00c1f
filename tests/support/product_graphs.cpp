// See product_graphs.h.
#include "support/product_graphs.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "ops/rows.h"
#include "ops/stored_rows.h"

#include <fmt/format.h>

#include <numeric>
#include <random>

namespace tilewright::test {

using ir::Value;
using ops::cast;
using Around = ProductGraph::Around;

namespace {

constexpr Index kScaleBlock = 32;  // of k, for each scale of 8-bit weights
constexpr Index kGroup = 128;      // the same of quantised weights

constexpr std::string_view kAroundNames[] = {"",
                                             ", bias and silu",
                                             ", an operand computed",
                                             ", weights with scales",
                                             ", scales of blocks",
                                             ", quantised weights",
                                             ", packed weights",
                                             ", epilogue reductions"};

bool is_quantised(Around around) {
  return around == Around::quantised_weights || around == Around::packed_weights;
}

Value input(ir::Graph& graph, const char* name, DType dtype, const Shape& shape) {
  return {&graph, graph.add_input(name, {dtype, shape})};
}

// A copy whose rows lie further apart.
Value rows_apart(Value x, Index more) {
  if (more == 0) return x;
  const std::string dtype(name(x.dtype()));
  return {x.graph, x.graph->add(ops::kCast, {x.id},
                                {{"dtype", dtype}, {ops::kPitch, x.shape()[x.shape().rank() - 1] + more}})};
}

// b (k, n) of 8 bits times a scale for each block of k and column, in the type of a.
Value scaled_weights(ir::Graph& graph, const ProductGraph& p) {
  const Index blocks = p.k / kScaleBlock;
  const Value scale = input(graph, "scale", DType::f32, {blocks, p.n});
  const Value b = cast(input(graph, "b", DType::i8, {p.k, p.n}), DType::f32);
  const Value each = ops::broadcast_to(ops::reshape(scale, {blocks, 1, p.n}), {blocks, kScaleBlock, p.n});
  return cast(b * ops::reshape(each, {p.k, p.n}), p.dtype);
}

// Scales around 1, so that no block vanishes beside the others.
Value scaled_blocks(ir::Graph& graph, const ProductGraph& p, Value a, Value b) {
  const auto blocks = [](Index extent) { return ceil_div(extent, ops::kScaleBlock); };
  const auto scale = [&](const char* name, Index rows, Index columns) {
    const Shape shape = p.batch == 1 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
    return ops::tanh(input(graph, name, DType::f32, shape)) + 1.5;
  };
  return ops::scaled_matmul(a, scale("scale_a", p.m, blocks(p.k)), b,
                            scale("scale_b", blocks(p.k), blocks(p.n)));
}

// Numbers of 8 bits (k, n), which lie by columns where b does; of 4 bits two of a row in a byte.
Value quantised_weights(ir::Graph& graph, const ProductGraph& p) {
  const bool packed = p.around == Around::packed_weights;
  const Index bytes = packed ? p.n / 2 : p.n;
  const Value w = p.b_by_columns ? ops::swap_axes(input(graph, "b", DType::i8, {bytes, p.k}), 0, 1)
                                 : input(graph, "b", DType::i8, {p.k, bytes});
  return packed ? ops::unpack_int4(w) : w;
}

// a · b under `around`.
Value product_of(ir::Graph& graph, const ProductGraph& p, Value a, Value b) {
  if (p.around == Around::scaled_blocks) return scaled_blocks(graph, p, a, b);
  if (!is_quantised(p.around)) return ops::matmul(a, b);
  const Value scales = input(graph, "scale", DType::f32, {p.k / kGroup, p.n});
  return ops::quantized_matmul(a, b, ops::tanh(scales) + 1.5);
}

Value operand_b(ir::Graph& graph, const ProductGraph& p) {
  if (p.around == Around::scaled_weights) return scaled_weights(graph, p);
  if (is_quantised(p.around)) return quantised_weights(graph, p);
  const auto shape = [&](Index rows, Index columns) {
    return p.batch == 1 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
  };
  const DType dtype = p.b_dtype.value_or(p.dtype);
  if (!p.b_by_columns) return rows_apart(input(graph, "b", dtype, shape(p.k, p.n)), p.apart);
  return ops::swap_axes(rows_apart(input(graph, "b", dtype, shape(p.n, p.k)), p.apart), -1, -2);
}

}  // namespace

std::string to_string(const ProductGraph& p) {
  return fmt::format("{} x {} x {} x {} {}{}{}{}{}", p.batch, p.m, p.n, p.k, name(p.dtype),
                     p.b_dtype ? fmt::format(" by {}", name(*p.b_dtype)) : "", p.b_by_columns ? " bT" : "",
                     p.apart > 0 ? fmt::format(" rows {} further apart", p.apart) : "",
                     kAroundNames[static_cast<std::size_t>(p.around)]);
}

ir::Graph graph_of(const ProductGraph& p) {
  ir::Graph graph("product");
  Value a = input(graph, "a", p.dtype, p.batch == 1 ? Shape{p.m, p.k} : Shape{p.batch, p.m, p.k});
  const Value b = operand_b(graph, p);
  if (p.around == Around::computed_operand) a = cast(ops::tanh(cast(a, DType::f32)), p.dtype);
  a = rows_apart(a, p.apart);
  const Value y = product_of(graph, p, a, b);
  if (p.around == Around::epilogue_reductions) {
    const Value z = cast(y, DType::f32) * 0.125 - 0.5;
    const int rank = z.shape().rank();
    std::vector<Index> all(static_cast<std::size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
    graph.set_outputs({cast(z, p.dtype).id, ops::max(ops::abs(z), {rank - 1}).id, ops::sum(z, {rank - 2}).id,
                       ops::min(z, all).id});
    return graph;
  }
  if (p.around != Around::bias_and_silu) {
    graph.set_outputs({y.id});
    return graph;
  }
  const Value bias = input(graph, "bias", DType::f32, {p.n});
  const Value z = ops::silu(cast(y, DType::f32) + ops::broadcast_to(bias, y.shape()));
  graph.set_outputs({y.id, z.id});
  return graph;
}

ProductGraph random_product(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](auto... of) {
    const Index all[] = {of...};
    return all[random() % std::size(all)];
  };
  constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2, DType::i8};
  const auto size = [&] {
    return one_of(1, 1, 2, 3, 5, 7, 8, 11, 15, 16, 17, 32, 64, 100, 127, 128, 129, 200);
  };
  ProductGraph p{.m = size(), .n = size()};
  p.batch = random() % 4 == 0 ? one_of(2, 3, 5) : 1;
  p.k = one_of(0, 1, 7, 16, 31, 64, 100, 127, 129, 192, 256, 300, 512, 1000, 2048, 5000);
  constexpr Index kMostProducts = 1 << 22;
  while (p.batch * p.m * p.n * p.k > kMostProducts) (p.m > p.n ? p.m : p.n) /= 2;
  p.dtype = kDTypes[random() % std::size(kDTypes)];
  p.b_by_columns = random() % 2 == 0;
  p.around = static_cast<Around>(random() % 8);
  if (p.around == Around::scaled_weights || is_quantised(p.around)) {
    p.batch = 1;
    p.b_by_columns = p.b_by_columns && p.around != Around::scaled_weights;
    p.n = p.around == Around::packed_weights ? round_up(p.n, 2) : p.n;
    p.k = round_up(p.k, p.around == Around::scaled_weights ? kScaleBlock : kGroup);
    if (p.dtype != DType::bf16) p.dtype = DType::f32;
  }
  if (is_f8(p.dtype) && random() % 3 == 0)
    p.b_dtype = p.dtype == DType::f8e4m3 ? DType::f8e5m2 : DType::f8e4m3;
  if (!is_float(p.dtype) && p.around != Around::scaled_blocks) p.around = Around::nothing;
  return p;
}

ProductGraph random_product_of_rows_apart(std::uint64_t seed) {
  ProductGraph p = random_product(seed);
  std::mt19937_64 random(seed);
  const auto unit = static_cast<Index>(16 / size_bytes(p.dtype));
  const Index long_rows = std::max(p.k, p.n);
  p.apart =
      random() % 3 == 0 ? static_cast<Index>(1 + random() % 9) : round_up(long_rows, unit) + unit - long_rows;
  return p;
}

std::vector<ProductGraph> large_products() {
  using Around = ProductGraph::Around;
  return {{.n = 8192, .k = 8192, .dtype = DType::bf16},
          {.n = 8192, .k = 8192, .dtype = DType::bf16, .b_by_columns = true},
          {.n = 8192, .k = 8192, .dtype = DType::bf16, .around = Around::scaled_weights},
          {.m = 8, .n = 8192, .k = 8192, .dtype = DType::bf16},
          {.m = 8, .n = 8192, .k = 8192, .b_by_columns = true, .around = Around::bias_and_silu},
          {.m = 8, .n = 8192, .k = 8192, .around = Around::scaled_weights},
          {.m = 128, .n = 8192, .k = 8192, .dtype = DType::bf16, .around = Around::bias_and_silu},
          {.m = 128, .n = 128, .k = 65536, .dtype = DType::bf16},
          {.m = 128, .n = 128, .k = 65536},
          {.m = 1024, .n = 1024, .k = 1024},
          {.m = 4096, .n = 4096, .k = 4096},
          {.m = 4096, .n = 4096, .k = 4096, .b_by_columns = true, .around = Around::bias_and_silu},
          {.m = 4096, .n = 4096, .k = 4096, .dtype = DType::f8e4m3, .b_by_columns = true},
          {.m = 512,
           .n = 192,
           .k = 4096,
           .dtype = DType::f8e5m2,
           .b_by_columns = true,
           .around = Around::bias_and_silu},
          {.m = 4096, .n = 4096, .k = 4096, .dtype = DType::bf16, .around = Around::scaled_weights},
          {.m = 4096, .n = 4096, .k = 1024, .dtype = DType::bf16, .around = Around::epilogue_reductions},
          // Rows that are not aligned: warps send them, beside as many accumulators.
          {.m = 8192, .n = 3001, .k = 1024, .dtype = DType::bf16},
          {.m = 8192, .n = 3001, .k = 1024, .dtype = DType::bf16, .around = Around::bias_and_silu},
          {.m = 8192,
           .n = 8192,
           .k = 8192,
           .dtype = DType::bf16,
           .b_by_columns = true,
           .around = Around::epilogue_reductions},
          {.m = 4096,
           .n = 4096,
           .k = 4096,
           .dtype = DType::f8e4m3,
           .b_by_columns = true,
           .around = Around::epilogue_reductions},
          {.m = 4096, .n = 4096, .k = 4096, .around = Around::epilogue_reductions}};
}

}  // namespace tilewright::test
