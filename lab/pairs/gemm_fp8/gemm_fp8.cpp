// gemm_fp8: y = (scales · a) · (scales · b)ᵀ, 8-bit floats in, bf16 out: one scale for each operand, one for
// each row of a and column of the result, or one for each 128 of k in a row of a and each 128 by 128 of b.
// Bound by arithmetic of 8 bits.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

// Tensor cores align what they add to the largest term and keep about 14 bits; sums of 128 of k go to f32.
constexpr double kKept = 0x1p-13;

// The scales of one operand, which has `rows` of `k`: one a block of so many rows, and of so many of k.
struct Scales {
  Index rows = 1, depth = 1;
  Index count_rows(Index of) const { return ceil_div(of, rows); }
  Index count_depth(Index k) const { return ceil_div(k, depth); }
};
struct Scaling {
  Scales a, b;
  bool blocks = false;
};

Scaling scaling_of(const std::string& name, const ProductSizes& s) {
  constexpr Index kBlock = 128;
  if (name == "tensor") return {{s.m, s.k}, {s.n, s.k}};
  if (name == "row") return {{1, s.k}, {1, s.k}};
  return {{1, kBlock}, {kBlock, kBlock}, true};
}

// Scales by row, then by k; `transposed`: the other way round in memory.
HostArray scaled(HostArray values, const HostArray& by, const Scales& scales, Index k, bool transposed,
                 ThreadPool& pool) {
  const Index rows = static_cast<Index>(values.size()) / k;
  for_rows(pool, rows, [&](Index i) {
    for (Index p = 0; p < k; ++p) {
      const Index r = i / scales.rows, d = p / scales.depth;
      const Index at = transposed ? d * scales.count_rows(rows) + r : r * scales.count_depth(k) + d;
      values[static_cast<std::size_t>(i * k + p)] *= by[static_cast<std::size_t>(at)];
    }
  });
  return values;
}

std::vector<Reference> gemm_fp8_reference(const HostArrays& in, const ProductSizes& s, const Scaling& scaling,
                                          const ToleranceRule& rule, ThreadPool& pool) {
  HostProduct product = host_product(scaled(in[0], in[2], scaling.a, s.k, scaling.blocks, pool),
                                     scaled(in[1], in[3], scaling.b, s.k, false, pool), s, pool);
  const ErrorScale scale(rule, s.m * s.n);
  const ToleranceParts parts = tolerance_parts(rule, s.m * s.n);
  const double kept = kKept / (parts.storage + parts.compute);
  Reference y{std::move(product.values), HostArray(static_cast<std::size_t>(s.m * s.n))};
  for_rows(pool, s.m, [&](Index i) {
    for (Index j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      const double size = product.size(i, j);
      y.magnitude[at] = scale(std::fabs(y.values[at]), size) + kept * size;
    }
  });
  return {std::move(y)};
}

Result<PairInstance> make_gemm_fp8(const Knobs& knobs, LabDevice& device) {
  // b lies by columns, as tensor cores read 8 bits, and as cuBLAS asks for it.
  const ProductSizes s = product_sizes(knobs, "gemm_fp8", MatrixOrder::columns);
  const DType dtype = knobs.dtype("dtype");
  const std::string& name_of_scaling = knobs.text("scaling");
  const Scaling scaling = scaling_of(name_of_scaling, s);
  TensorWorkload w{
      .target = "gemm_fp8",
      .shape = s.text() + (name_of_scaling == "tensor" ? "" : " scaled by " + name_of_scaling + "s"),
      .dtype = std::string(name(dtype))};
  // Values that fill the type's range, as scaling makes them.
  const Normal filling{.deviation = 16}, scales{.mean = 0.02, .deviation = 0.002};
  // Scales of blocks of a lie by rows of a, as the copies of other libraries do.
  const Index rows_a = scaling.a.count_rows(s.m), depth_a = scaling.a.count_depth(s.k);
  const Shape scale_a = scaling.blocks ? Shape{depth_a, rows_a} : Shape{rows_a, depth_a},
              scale_b{scaling.b.count_rows(s.n), scaling.b.count_depth(s.k)};
  w.inputs = {normal_input("a", Shape{s.m, s.k}, dtype, filling),
              normal_input("b", s.b_shape(), dtype, filling),
              shared(normal_input("scale_a", scale_a, DType::f32, scales)),
              shared(normal_input("scale_b", scale_b, DType::f32, scales))};
  w.outputs = {
      {"y", DType::bf16, Shape{s.m, s.n}, {.storage = DType::bf16, .reduction = s.k, .operations = 3}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.unit = "GFLOP/s";
  w.function = [blocks = scaling.blocks](const std::vector<Tensor>& in) {
    const Tensor scale_of_a = blocks ? transpose(in[2], {1, 0}) : in[2];
    return std::vector{cast(
        scaled_matmul(in[0], scale_of_a, transpose(in[1], {1, 0}), transpose(in[3], {1, 0})), DType::bf16)};
  };
  const ToleranceRule rule = w.outputs[0].rule;
  w.peer_parameters = {{"scaling", name_of_scaling}};
  w.reference = [s, scaling, rule](const HostArrays& in, ThreadPool& pool) {
    return gemm_fp8_reference(in, s, scaling, rule, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_fp8_pair() {
  return {
      .name = "gemm_fp8",
      .doc = "y = (a bT) scales, 8-bit floats to bf16",
      .knobs = {{.name = "shape",
                 .values = {Shape{512, 512, 512}},
                 .doc = "m x n x k: y (m, n) = a (m, k) · b (n, k)",
                 .cuda_values = {Shape{4096, 4096, 4096}, Shape{8192, 8192, 8192}}},
                {.name = "dtype",
                 .values = {DType::f8e4m3},
                 .doc = "type of both operands",
                 .choices = {DType::f8e4m3, DType::f8e5m2}},
                {.name = "scaling",
                 .values = {std::string("tensor")},
                 .doc = "a scale for each operand, for each row of a and of b, or for 1 x 128 of a and 128 x "
                        "128 of b",
                 .choices = {std::string("tensor"), std::string("row"), std::string("block")}}},
      .make = make_gemm_fp8,
      .tiny = {{"shape=37x53x131", "dtype=f8e4m3,f8e5m2", "scaling=tensor,row,block"}},
      .suites = {{"products", {"shape=512x512x512", "scaling=tensor,row,block"}}}};
}

}  // namespace tilewright::lab
