// gemm_fp8: y = (a · bᵀ) · scales, 8-bit floats in, bf16 out: one scale for each operand, or one for each row
// of a and column of the result. Bound by arithmetic of 8 bits.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

// Tensor cores align what they add to the largest term and keep about 14 bits; sums of 128 of k go to f32.
constexpr double kKept = 0x1p-13;

double one_of(const HostArray& scales, Index i) {
  return scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

std::vector<Reference> gemm_fp8_reference(const HostArrays& in, const ProductSizes& s,
                                          const ToleranceRule& rule, ThreadPool& pool) {
  HostProduct product = host_product(in[0], in[1], s, pool);
  const ErrorScale scale(rule, s.m * s.n);
  const ToleranceParts parts = tolerance_parts(rule, s.m * s.n);
  const double kept = kKept / (parts.storage + parts.compute);
  Reference y{std::move(product.values), HostArray(static_cast<std::size_t>(s.m * s.n))};
  for_rows(pool, s.m, [&](Index i) {
    for (Index j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      const double factor = one_of(in[2], i) * one_of(in[3], j),
                   size = std::fabs(factor) * product.size(i, j);
      y.values[at] *= factor;
      y.magnitude[at] = scale(std::fabs(y.values[at]), size) + kept * size;
    }
  });
  return {std::move(y)};
}

Result<PairInstance> make(const Knobs& knobs, LabDevice& device) {
  // As tensor cores read 8 bits, and as cuBLAS asks for it.
  const ProductSizes s = product_sizes(knobs, "gemm_fp8", BOrder::columns);
  const DType dtype = knobs.dtype("dtype");
  const bool rows = knobs.text("scaling") == "row";
  TensorWorkload w{.target = "gemm_fp8",
                   .shape = s.text() + (rows ? " scaled by rows" : ""),
                   .dtype = std::string(name(dtype))};
  // Values that fill the type's range, as scaling makes them.
  const Normal filling{.deviation = 16}, scales{.mean = 0.02, .deviation = 0.002};
  w.inputs = {normal_input("a", Shape{s.m, s.k}, dtype, filling),
              normal_input("b", s.b_shape(), dtype, filling),
              shared(normal_input("scale_a", rows ? Shape{s.m, 1} : Shape{1}, DType::f32, scales)),
              shared(normal_input("scale_b", rows ? Shape{1, s.n} : Shape{1}, DType::f32, scales))};
  w.outputs = {
      {"y", DType::bf16, Shape{s.m, s.n}, {.storage = DType::bf16, .reduction = s.k, .operations = 3}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.unit = "GFLOP/s";
  w.function = [](const std::vector<Tensor>& in) {
    const Tensor product = matmul(in[0], transpose(in[1], {1, 0}));
    return std::vector{cast(product * (in[2] * in[3]), DType::bf16)};
  };
  const ToleranceRule rule = w.outputs[0].rule;
  w.reference = [s, rule](const HostArrays& in, ThreadPool& pool) {
    return gemm_fp8_reference(in, s, rule, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_fp8_pair() {
  return {.name = "gemm_fp8",
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
                     .doc = "a scale for each operand, or for each row of a and of b",
                     .choices = {std::string("tensor"), std::string("row")}}},
          .make = make};
}

}  // namespace tilewright::lab
