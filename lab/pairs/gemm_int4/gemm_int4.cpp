// gemm_int4: y = x · w with weights of 4 bits, two a byte, or of 8, and a scale for each group of them along
// k. Few rows read the weights at the memory's rate, as they are stored: by default a column's bytes lie
// together, as in torch.nn.Linear, whose weight is (out_features, in_features), and in the packed forms of
// it that llama.cpp, MLX and compressed-tensors write; GPTQ and AWQ keep theirs by k (b_order=rows).
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

struct Weights {
  Index bits = 4, group = 128;
  Index bytes_per_row(const ProductSizes& s) const { return bits == 4 ? s.n / 2 : s.n; }
};

// Number `column` at p of k.
double number_at(const HostArray& bytes, const Weights& w, const ProductSizes& s, Index column, Index p) {
  const Index columns = w.bytes_per_row(s), c = column % columns;
  const Index place = s.b_order == MatrixOrder::columns ? c * s.k + p : p * columns + c;
  const auto byte = static_cast<int>(bytes[static_cast<std::size_t>(place)]);
  if (w.bits == 8) return byte;
  const int nibble = (column < columns ? byte : byte >> 4) & 15;
  return nibble < 8 ? nibble : nibble - 16;
}

std::vector<Reference> gemm_int4_reference(const HostArrays& in, const ProductSizes& s, const Weights& w,
                                           const ErrorScale& scale, ThreadPool& pool) {
  HostArray weights(static_cast<std::size_t>(s.n * s.k));
  for_rows(pool, s.n, [&](Index j) {
    for (Index p = 0; p < s.k; ++p)
      weights[static_cast<std::size_t>(j * s.k + p)] =
          number_at(in[1], w, s, j, p) * in[2][static_cast<std::size_t>(p / w.group * s.n + j)];
  });
  HostProduct product =
      host_product(in[0], weights, {.m = s.m, .n = s.n, .k = s.k, .b_order = MatrixOrder::columns}, pool);
  Reference y{std::move(product.values), HostArray(static_cast<std::size_t>(s.m * s.n))};
  // Scaled weights may be rounded to the type of x, each by itself: five deviations of a uniform error, over
  // terms whose squares sum to about size² / k.
  const double independent = 3 / std::sqrt(static_cast<double>(s.k));
  for_rows(pool, s.m, [&](Index i) {
    for (Index j = 0; j < s.n; ++j) {
      const auto at = static_cast<std::size_t>(i * s.n + j);
      const double size = product.size(i, j);
      y.magnitude[at] = scale(std::fabs(y.values[at]) + independent * size, size);
    }
  });
  return {std::move(y)};
}

Result<PairInstance> make_gemm_int4(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s = product_sizes(knobs, "gemm_int4");
  const Weights weights{.bits = knobs.text("bits") == "4" ? 4 : 8, .group = knobs.integer("group")};
  if (weights.group < 1 || s.k % weights.group != 0 || s.n % 2 != 0)
    throw Error("gemm_int4: k is a multiple of group, n of 2");
  const DType dtype = DType::bf16;
  TensorWorkload w{.target = "gemm_int4",
                   .shape = s.text() + ", groups of " + std::to_string(weights.group),
                   .dtype = "int" + std::to_string(weights.bits)};
  const Normal bytes{.deviation = 50}, scales{.mean = 0.02, .deviation = 0.002};
  const bool by_columns = s.b_order == MatrixOrder::columns;
  if (!by_columns) w.shape += ", w by rows";
  const Index columns = weights.bytes_per_row(s);
  w.inputs = {normal_input("x", Shape{s.m, s.k}, dtype),
              normal_input("w", by_columns ? Shape{columns, s.k} : Shape{s.k, columns}, DType::i8, bytes),
              normal_input("scales", Shape{s.k / weights.group, s.n}, dtype, scales)};
  w.outputs = {{"y", dtype, Shape{s.m, s.n}, {.storage = dtype, .reduction = s.k, .operations = 3}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.function = [packed = weights.bits == 4, by_columns](const std::vector<Tensor>& in) {
    const Tensor by_k = by_columns ? transpose(in[1], {1, 0}) : in[1];
    return std::vector{quantized_matmul(in[0], packed ? unpack_int4(by_k) : by_k, in[2])};
  };
  w.no_peers = "PyTorch has no product of packed weights of its own";
  const ErrorScale scale(w.outputs[0].rule, s.m * s.n);
  w.reference = [s, weights, scale](const HostArrays& in, ThreadPool& pool) {
    return gemm_int4_reference(in, s, weights, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_int4_pair() {
  return {.name = "gemm_int4",
          .doc = "y = x w, weights of 4 or 8 bits with scales of groups",
          .knobs = {{.name = "shape",
                     .values = {Shape{1, 4096, 4096}},
                     .doc = "m x n x k: y (m, n) = x (m, k) · w (k, n)",
                     .cuda_values = {Shape{1, 8192, 8192}, Shape{16, 8192, 8192}, Shape{4096, 4096, 4096}}},
                    {.name = "bits",
                     .values = {std::string("4")},
                     .doc = "of a weight",
                     .choices = {std::string("4"), std::string("8")}},
                    {.name = "b_order",
                     .values = {std::string("columns")},
                     .doc = "the weights' memory: by k within a column, or by columns within a row",
                     .choices = {std::string("rows"), std::string("columns")}},
                    {.name = "group", .values = {Index{128}}, .doc = "weights along k that share a scale"}},
          .make = make_gemm_int4,
          .tiny = {{"shape=1x54x256,20x54x256", "bits=4,8", "group=64", "b_order=rows,columns"}},
          .suites = {{"products", {"shape=1x512x512,64x512x512", "bits=4,8"}}}};
}

}  // namespace tilewright::lab
