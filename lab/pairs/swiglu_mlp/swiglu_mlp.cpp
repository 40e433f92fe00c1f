// swiglu_mlp: y = (silu(x · w1) * (x · w3)) · w2, the MLP of Llama (N. Shazeer, GLU Variants Improve
// Transformer, 2020): two products of the same x, their results multiplied, a third product.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

constexpr double kSiluSlope = 1.1;  // the largest derivative of silu, near x = 2.4

struct MlpSizes {
  Index rows, width, hidden;
};

// What the last product sums over, and how far off each may be, squared.
struct Gated {
  HostArray values, squared_errors;  // (rows, hidden)
};

Gated gated(const HostArrays& in, const MlpSizes& s, const ErrorScale& scale, ThreadPool& pool) {
  const ProductSizes sizes{.m = s.rows, .n = s.hidden, .k = s.width};
  const HostProduct gate = host_product(in[0], in[1], sizes, pool);
  const HostProduct up = host_product(in[0], in[2], sizes, pool);
  Gated h{HostArray(gate.values.size()), HostArray(gate.values.size())};
  for_rows(pool, s.rows, [&](Index i) {
    for (Index j = 0; j < s.hidden; ++j) {
      const auto at = static_cast<std::size_t>(i * s.hidden + j);
      const double g = gate.values[at], u = up.values[at], silu = g / (1 + std::exp(-g));
      h.values[at] = silu * u;
      // Stored: g, then silu(g), u and their product. Computed: both sums, and silu.
      const double size = std::fabs(h.values[at]);
      const double error =
          scale.term(kSiluSlope * std::fabs(g * u) + 3 * size,
                     kSiluSlope * gate.size(i, j) * std::fabs(u) + std::fabs(silu) * up.size(i, j) + size);
      h.squared_errors[at] = error * error;
    }
  });
  return h;
}

std::vector<Reference> swiglu_reference(const HostArrays& in, const MlpSizes& s, const ErrorScale& scale,
                                        ThreadPool& pool) {
  const ProductSizes sizes{.m = s.rows, .n = s.width, .k = s.hidden};
  const Gated h = gated(in, s, scale, pool);
  HostProduct last = host_product(h.values, in[3], sizes, pool);
  HostArray squares = in[3];
  for (double& v : squares) v *= v;
  Reference y{std::move(last.values), host_product(h.squared_errors, squares, sizes, pool).values};
  for_rows(pool, s.rows, [&](Index i) {
    for (Index j = 0; j < s.width; ++j) {
      const auto at = static_cast<std::size_t>(i * s.width + j);
      y.magnitude[at] = std::sqrt(y.magnitude[at]) + scale(std::fabs(y.values[at]), last.size(i, j));
    }
  });
  return {std::move(y)};
}

Result<PairInstance> make_swiglu_mlp(const Knobs& knobs, LabDevice& device) {
  const MlpSizes s{knobs.integer("rows"), knobs.integer("width"), knobs.integer("hidden")};
  if (s.rows < 1 || s.width < 1 || s.hidden < 1) throw Error("swiglu_mlp: sizes are at least 1");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "swiglu_mlp",
                   .shape = shape_text(Shape{s.rows, s.width, s.hidden}),
                   .dtype = std::string(name(dtype))};
  const auto weight = [&](const char* name, Index from, Index to) {
    return shared(
        normal_input(name, Shape{from, to}, dtype, {.deviation = 1 / std::sqrt(static_cast<double>(from))}));
  };
  w.inputs = {normal_input("x", Shape{s.rows, s.width}, dtype), weight("w1", s.width, s.hidden),
              weight("w3", s.width, s.hidden), weight("w2", s.hidden, s.width)};
  // silu: exp 4, add, divide, multiply; the product of both
  w.outputs = {{"y",
                dtype,
                Shape{s.rows, s.width},
                {.storage = dtype, .reduction = s.width + s.hidden, .operations = 10}}};
  const double flops =
      6.0 * static_cast<double>(s.rows) * static_cast<double>(s.width) * static_cast<double>(s.hidden);
  w.cost = product_cost(w.inputs, w.outputs, flops, dtype);
  w.unit = "GFLOP/s";
  w.composites = true;
  w.function = [](const std::vector<Tensor>& in) {
    return std::vector{matmul(silu(matmul(in[0], in[1])) * matmul(in[0], in[2]), in[3])};
  };
  const ErrorScale scale(w.outputs[0].rule, s.rows * s.width);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return swiglu_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair swiglu_mlp_pair() {
  return {
      .name = "swiglu_mlp",
      .doc = "y = (silu(x w1) * (x w3)) w2",
      .knobs = {{.name = "rows", .values = {Index{512}}, .doc = "rows of x", .cuda_values = {Index{2048}}},
                {.name = "width",
                 .values = {Index{768}},
                 .doc = "columns of x and of y",
                 .cuda_values = {Index{4096}}},
                {.name = "hidden",
                 .values = {Index{2048}},
                 .doc = "columns of w1 and of w3",
                 .cuda_values = {Index{11008}}},  // Llama 2 7B's
                product_dtype_knob()},
      .make = make_swiglu_mlp,
      .tiny = {{"rows=17", "width=37", "hidden=131", "dtype=f32,bf16"}},
      .suites = {{"products", {"rows=128", "width=256", "hidden=512"}}}};
}

}  // namespace tilewright::lab
