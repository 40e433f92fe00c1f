// gemv: y = x · w for one row x, as a language model does for each token: every element of w is read once.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

std::vector<Reference> gemv_reference(const HostArrays& in, const ProductSizes& s, const ErrorScale& scale,
                                      ThreadPool& pool) {
  HostProduct product = host_product(in[0], in[1], s, pool);
  Reference y{std::move(product.values), HostArray(static_cast<std::size_t>(s.n))};
  for (Index j = 0; j < s.n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    y.magnitude[at] = scale(std::fabs(y.values[at]), product.size(0, j));
  }
  return {std::move(y)};
}

Result<PairInstance> make_gemv(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s{.m = 1, .n = knobs.integer("n"), .k = knobs.integer("k")};
  if (s.n < 1 || s.k < 1) throw Error("gemv: k and n are at least 1");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "gemv", .shape = shape_text(Shape{s.k, s.n}), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", Shape{1, s.k}, dtype), normal_input("w", Shape{s.k, s.n}, dtype)};
  w.outputs = {{"y", dtype, Shape{1, s.n}, {.storage = dtype, .reduction = s.k}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.function = [](const std::vector<Tensor>& in) { return std::vector{matmul(in[0], in[1])}; };
  const ErrorScale scale(w.outputs[0].rule, s.n);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return gemv_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemv_pair() {
  return {
      .name = "gemv",
      .doc = "y = x w, one row x",
      .knobs = {{.name = "k", .values = {Index{4096}}, .doc = "elements of x", .cuda_values = {Index{8192}}},
                {.name = "n", .values = {Index{4096}}, .doc = "elements of y", .cuda_values = {Index{8192}}},
                product_dtype_knob()},
      .make = make_gemv,
      .tiny = {{"k=131", "n=307", "dtype=f32,bf16"}},
      .suites = {{"products", {"k=1024", "n=1024"}}}};
}

}  // namespace tilewright::lab
