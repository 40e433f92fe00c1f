// gemm_batched: as many products as the batch has, in three forms: one matmul a product, their results put
// together; one matmul over a batch axis; and the same where the products lie beside one another in memory,
// as the heads of attention do.
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

enum class BatchForm { one_by_one, batched, strided };

struct BatchedSizes {
  Index batch = 0;
  ProductSizes each;
  BatchForm form = BatchForm::batched;

  // A matrix for each product; strided: a row of each product, then the next row of each.
  Shape shape(Index rows, Index columns) const {
    return form == BatchForm::strided ? Shape{rows, batch, columns} : Shape{batch, rows, columns};
  }
  double flops() const { return static_cast<double>(batch) * each.flops(); }
};

BatchedSizes batch_sizes(const Knobs& knobs) {
  const Shape& shape = knobs.shape("shape");
  if (shape.rank() != 4 || shape.size() < 1)
    throw Error("--set gemm_batched.shape: batch x m x n x k, each at least 1, for example 16x512x512x64");
  const std::string& form = knobs.text("form");
  return {shape[0],
          {.m = shape[1], .n = shape[2], .k = shape[3]},
          form == "batched"   ? BatchForm::batched
          : form == "strided" ? BatchForm::strided
                              : BatchForm::one_by_one};
}

std::vector<Tensor> gemm_batched_as_written(const std::vector<Tensor>& in, const BatchedSizes& s) {
  if (s.form == BatchForm::batched) return {matmul(in[0], in[1])};
  if (s.form == BatchForm::strided)
    return {swap_axes(matmul(swap_axes(in[0], 0, 1), swap_axes(in[1], 0, 1)), 0, 1)};
  std::vector<Tensor> products;
  products.reserve(static_cast<std::size_t>(s.batch));
  for (Index b = 0; b < s.batch; ++b) products.push_back(matmul(select(in[0], 0, b), select(in[1], 0, b)));
  return {stack(products, 0)};
}

// The matrix of product `b` by itself.
HostArray matrix_of(const HostArray& all, Index b, Index rows, Index columns, const BatchedSizes& s) {
  HostArray out(static_cast<std::size_t>(rows * columns));
  for (Index r = 0; r < rows; ++r) {
    const Index from = s.form == BatchForm::strided ? (r * s.batch + b) * columns : (b * rows + r) * columns;
    std::copy_n(all.begin() + from, columns, out.begin() + r * columns);
  }
  return out;
}

std::vector<Reference> gemm_batched_reference(const HostArrays& in, const BatchedSizes& s,
                                              const ErrorScale& scale, ThreadPool& pool) {
  const auto [m, n, k, b_order, a_order] = s.each;
  const auto size = static_cast<std::size_t>(s.batch * m * n);
  Reference c{HostArray(size), HostArray(size)};
  for (Index b = 0; b < s.batch; ++b) {
    const HostProduct product =
        host_product(matrix_of(in[0], b, m, k, s), matrix_of(in[1], b, k, n, s), s.each, pool);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        const auto to = static_cast<std::size_t>(s.form == BatchForm::strided ? (i * s.batch + b) * n + j
                                                                              : (b * m + i) * n + j);
        c.values[to] = product.values[static_cast<std::size_t>(i * n + j)];
        c.magnitude[to] = scale(std::fabs(c.values[to]), product.size(i, j));
      }
  }
  return {std::move(c)};
}

Result<PairInstance> make_gemm_batched(const Knobs& knobs, LabDevice& device) {
  const BatchedSizes s = batch_sizes(knobs);
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "gemm_batched",
                   .shape = shape_text(knobs.shape("shape")) + " " + knobs.text("form"),
                   .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("a", s.shape(s.each.m, s.each.k), dtype),
              normal_input("b", s.shape(s.each.k, s.each.n), dtype)};
  w.outputs = {{"c", dtype, s.shape(s.each.m, s.each.n), {.storage = dtype, .reduction = s.each.k}}};
  w.cost = product_cost(w.inputs, w.outputs, s.flops(), dtype);
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) { return gemm_batched_as_written(in, s); };
  w.peer_parameters = {{"form", knobs.text("form")}};
  const ErrorScale scale(w.outputs[0].rule, s.batch * s.each.m * s.each.n);
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return gemm_batched_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gemm_batched_pair() {
  return {
      .name = "gemm_batched",
      .doc = "c = a b for each matrix of a batch",
      .knobs = {{.name = "shape",
                 .values = {Shape{16, 512, 512, 64}},
                 .doc = "batch x m x n x k",
                 .cuda_values = {Shape{48, 2048, 2048, 64}, Shape{16, 2048, 2048, 2048}}},
                {.name = "form",
                 .values = {std::string("batched")},
                 .doc = "one matmul for each product, one for all, or one for products that lie in strides",
                 .choices = {std::string("one_by_one"), std::string("batched"), std::string("strided")}},
                product_dtype_knob()},
      .make = make_gemm_batched,
      .tiny = {{"shape=3x37x53x19", "form=one_by_one,batched,strided", "dtype=f32,bf16"}},
      .suites = {{"products", {"shape=12x256x256x64", "form=one_by_one,batched,strided"}}}};
}

}  // namespace tilewright::lab
