// Products in float64 by plain loops, and the knobs of pairs that are made of products.
#include "pairs/product.h"

#include <cmath>

namespace tilewright::lab {

HostArray row_norms(const HostArray& a, Index columns, ThreadPool& pool) {
  const Index rows = static_cast<Index>(a.size()) / columns;
  HostArray norms(static_cast<std::size_t>(rows));
  for_rows(pool, rows, [&](Index r) {
    double sum = 0;
    for (double v : row_of(a, r, columns)) sum += v * v;
    norms[static_cast<std::size_t>(r)] = std::sqrt(sum);
  });
  return norms;
}

namespace {

// Adds the squares of columns `begin` to `end`.
void add_column_norms(const double* a, Index rows, Index columns, Index begin, Index end, double* norms) {
  for (Index r = 0; r < rows; ++r) {
    for (Index c = begin; c < end; ++c) norms[c] += a[r * columns + c] * a[r * columns + c];
  }
  for (Index c = begin; c < end; ++c) norms[c] = std::sqrt(norms[c]);
}

}  // namespace

HostArray column_norms(const double* a, Index rows, Index columns) {
  HostArray norms(static_cast<std::size_t>(columns));
  add_column_norms(a, rows, columns, 0, columns, norms.data());
  return norms;
}

HostArray column_norms(const HostArray& a, Index columns, ThreadPool& pool) {
  HostArray norms(static_cast<std::size_t>(columns));
  const Index rows = static_cast<Index>(a.size()) / columns;
  pool.parallel_for(columns, [&](Index begin, Index end, int) {
    add_column_norms(a.data(), rows, columns, begin, end, norms.data());
  });
  return norms;
}

HostProduct host_product(const HostArray& a, const HostArray& b, const ProductSizes& s, ThreadPool& pool) {
  const bool a_rows = s.a_order == MatrixOrder::rows, b_rows = s.b_order == MatrixOrder::rows;
  HostProduct c{HostArray(static_cast<std::size_t>(s.m * s.n)),
                a_rows ? row_norms(a, s.k, pool) : column_norms(a, s.m, pool),
                b_rows ? column_norms(b, s.n, pool) : row_norms(b, s.k, pool)};
  host_matmul({.a = a.data(),
               .b = b.data(),
               .c = c.values.data(),
               .m = s.m,
               .n = s.n,
               .k = s.k,
               .lda = a_rows ? s.k : 1,
               .ldb = b_rows ? s.n : 1,
               .ldc = s.n,
               .a_step = a_rows ? 1 : s.m,
               .b_step = b_rows ? 1 : s.k},
              pool);
  return c;
}

Tensor product(const Tensor& a, const Tensor& b, MatrixOrder order) {
  return matmul(a, order == MatrixOrder::rows ? b : transpose(b, {1, 0}));
}

perf::Cost product_cost(const std::vector<InputSpec>& inputs, const std::vector<OutputSpec>& outputs,
                        double flops, DType dtype) {
  perf::Cost cost = cost_of(inputs, outputs, 0);
  cost.matrix[dtype] = flops;
  return cost;
}

Knob product_dtype_knob() {
  return {.name = "dtype",
          .values = {DType::f32},
          .doc = "element type",
          .cuda_values = {DType::bf16},
          .choices = {DType::f32, DType::f16, DType::bf16}};
}

std::vector<Knob> product_knobs() {
  return {{.name = "shape",
           .values = {Shape{1024, 1024, 1024}},
           .doc = "m x n x k: c (m, n) = a (m, k) · b (k, n)",
           .cuda_values = {Shape{8192, 8192, 8192}, Shape{4096, 4096, 4096}, Shape{8192, 3072, 768}}},
          product_dtype_knob(),
          {.name = "b_order",
           .values = {std::string("rows")},
           .doc = "what of b lies together in memory: rows, or columns",
           .choices = {std::string("rows"), std::string("columns")}}};
}

ProductSizes product_sizes(const Knobs& knobs, const std::string& pair) {
  return product_sizes(knobs, pair,
                       knobs.text("b_order") == "rows" ? MatrixOrder::rows : MatrixOrder::columns);
}

ProductSizes product_sizes(const Knobs& knobs, const std::string& pair, MatrixOrder order) {
  const Shape& shape = knobs.shape("shape");
  if (shape.rank() != 3 || shape.size() < 1)
    throw Error("--set " + pair + ".shape: m x n x k, each at least 1, for example 8192x3072x768");
  return {.m = shape[0], .n = shape[1], .k = shape[2], .b_order = order};
}

std::pair<std::string, std::string> b_order_parameter(MatrixOrder order) {
  return {"b_order", order == MatrixOrder::rows ? "rows" : "columns"};
}

}  // namespace tilewright::lab
