// gemm_bias_gelu: y = gelu(a · b + bias), the first half of a transformer's MLP: a product that should not
// pay for what follows it.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/host_norm.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

constexpr double kGeluSlope = 1.13;  // the largest derivative of gelu, at x = √2

std::vector<Reference> gemm_bias_gelu_reference(const HostArrays& in, const ProductSizes& s,
                                                const ErrorScale& scale, ThreadPool& pool) {
  const HostArray& bias = in[2];
  HostProduct product = host_product(in[0], in[1], s, pool);
  Reference y{std::move(product.values), HostArray(static_cast<std::size_t>(s.m * s.n))};
  for_rows(pool, s.m, [&](Index i) {
    for (Index j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      const double c = y.values[at], b = bias[static_cast<std::size_t>(j)], z = c + b;
      y.values[at] = gelu_tanh(z);
      // Stored: the product, the sum, the result. Computed: the sums before gelu, and 1 + tanh times z.
      y.magnitude[at] = scale(kGeluSlope * (std::fabs(c) + std::fabs(z)) + std::fabs(y.values[at]),
                              kGeluSlope * (product.size(i, j) + std::fabs(b)) + std::fabs(z));
    }
  });
  return {std::move(y)};
}

Result<PairInstance> make_gemm_bias_gelu(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s = product_sizes(knobs, "gemm_bias_gelu");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "gemm_bias_gelu", .shape = s.text(), .dtype = std::string(name(dtype))};
  if (s.b_order == MatrixOrder::columns) w.shape += " b by columns";
  // Weights of a size that keeps a · b near 1, where gelu bends.
  const Normal weight{.deviation = 1 / std::sqrt(static_cast<double>(s.k))};
  w.inputs = {normal_input("a", Shape{s.m, s.k}, dtype), normal_input("b", s.b_shape(), dtype, weight),
              shared(normal_input("bias", Shape{s.n}, dtype, {.deviation = 0.5}))};
  w.outputs = {{"y", dtype, Shape{s.m, s.n}, {.storage = dtype, .reduction = s.k, .operations = 24}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) {
    return std::vector{gelu_tanh(product(in[0], in[1], s.b_order) + in[2])};
  };
  w.peer_parameters = {b_order_parameter(s.b_order)};
  const ErrorScale scale(w.outputs[0].rule, s.m * s.n);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return gemm_bias_gelu_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_bias_gelu_pair() {
  return {.name = "gemm_bias_gelu",
          .doc = "y = gelu(a b + bias), gelu by tanh",
          .knobs = product_knobs(),
          .make = make_gemm_bias_gelu,
          .tiny = {{"shape=37x53x131", "dtype=f32,bf16", "b_order=rows,columns"}},
          .suites = {{"products", {"shape=512x512x512"}}}};
}

}  // namespace tilewright::lab
