// gemm: c = a · b. Bound by arithmetic once the sizes are in the hundreds; small k makes it one of memory.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

std::vector<Reference> gemm_reference(const HostArrays& in, const ProductSizes& s, const ErrorScale& scale,
                                      ThreadPool& pool) {
  HostProduct product = host_product(in[0], in[1], s, pool);
  Reference c{std::move(product.values), HostArray(static_cast<std::size_t>(s.m * s.n))};
  for_rows(pool, s.m, [&](Index i) {
    for (Index j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      c.magnitude[at] = scale(std::fabs(c.values[at]), product.size(i, j));
    }
  });
  return {std::move(c)};
}

Result<PairInstance> make(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s = product_sizes(knobs, "gemm");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "gemm", .shape = s.text(), .dtype = std::string(name(dtype))};
  if (s.b_order == BOrder::columns) w.shape += " b by columns";
  w.inputs = {normal_input("a", Shape{s.m, s.k}, dtype), normal_input("b", s.b_shape(), dtype)};
  w.outputs = {{"c", dtype, Shape{s.m, s.n}, {.storage = dtype, .reduction = s.k}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) { return std::vector{product(in[0], in[1], s.b_order)}; };
  w.peer_parameters = {b_order_parameter(s.b_order)};
  const ErrorScale scale(w.outputs[0].rule, s.m * s.n);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return gemm_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_pair() {
  return {.name = "gemm", .doc = "c = a b, matrices", .knobs = product_knobs(), .make = make};
}

}  // namespace tilewright::lab
