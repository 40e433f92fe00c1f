// gemm: c = a · b. Bound by arithmetic once the sizes are in the hundreds; small k makes it one of memory.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

// tf32 has 10 bits of mantissa; what is below is rounded, or cut off.
constexpr double kTf32Cut = 0x1p-10;

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

Result<PairInstance> make_gemm(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s = product_sizes(knobs, "gemm");
  const DType dtype = knobs.dtype("dtype");
  const bool tf32 = knobs.text("tf32") == "yes";
  if (tf32 && dtype != DType::f32)
    return failure(Failure::Kind::unsupported, "gemm: tf32 is of f32 operands");
  TensorWorkload w{.target = "gemm", .shape = s.text(), .dtype = std::string(name(dtype))};
  if (s.b_order == MatrixOrder::columns) w.shape += " b by columns";
  if (tf32) w.shape += " as tf32";
  if (tf32) w.options.precision = Precision::tf32;
  w.inputs = {normal_input("a", Shape{s.m, s.k}, dtype), normal_input("b", s.b_shape(), dtype)};
  w.outputs = {{"c",
                dtype,
                Shape{s.m, s.n},
                {.storage = dtype, .reduction = s.k, .operand_roundoff = tf32 ? kTf32Cut : 0}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  if (tf32) w.cost.tf32 = s.flops();
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) { return std::vector{product(in[0], in[1], s.b_order)}; };
  w.peer_parameters = {b_order_parameter(s.b_order), {"tf32", knobs.text("tf32")}};
  const ErrorScale scale(w.outputs[0].rule, s.m * s.n);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return gemm_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_pair() {
  std::vector<Knob> knobs = product_knobs();
  knobs.push_back({.name = "tf32",
                   .values = {std::string("no")},
                   .doc = "whether f32 may be multiplied with 10 bits of mantissa, by us and by peers",
                   .choices = {std::string("no"), std::string("yes")}});
  return {.name = "gemm",
          .doc = "c = a b, matrices",
          .knobs = std::move(knobs),
          .make = make_gemm,
          .tiny = {{"shape=37x53x131,130x67x300", "dtype=f32,bf16", "b_order=rows,columns"},
                   {"shape=1x1x1", "dtype=f16"}},
          .suites = {{"quick", {"shape=1024x1024x1024"}},
                     {"products", {"shape=512x512x512", "b_order=rows,columns"}}}};
}

}  // namespace tilewright::lab
