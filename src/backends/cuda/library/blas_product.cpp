// Matrices as BLAS libraries see them: by columns, or transposed.
#include "backends/cuda/library/blas_product.h"

#include <fmt/format.h>

#include <limits>

namespace tilewright::cuda {

namespace {

enum class Read : unsigned char { as_it_lies, transposed };

// The matrix x of (rows, columns), by columns, or by rows as the transpose of one that lies by columns.
std::optional<BlasMatrix> lying(const ProductMatrix& x, Index rows, Index columns, Read read) {
  const bool turned = read == Read::transposed;
  const Index down = turned ? columns : rows, across = turned ? rows : columns;
  const Index step_down = turned ? x.column_stride : x.row_stride,
              step_across = turned ? x.row_stride : x.column_stride;
  if (down > 1 && step_down != 1) return std::nullopt;
  const Index leading = across > 1 ? step_across : down;
  if (leading < down) return std::nullopt;
  return BlasMatrix{x, down, across, leading, turned};
}

std::optional<BlasMatrix> lying(const ProductMatrix& x, Index rows, Index columns) {
  const auto by_columns = lying(x, rows, columns, Read::as_it_lies);
  return by_columns ? by_columns : lying(x, rows, columns, Read::transposed);
}

Product transposed(const Product& p) {
  const auto turn = [](ProductMatrix x) {
    std::swap(x.row_stride, x.column_stride);
    return x;
  };
  Product out = p;
  out.m = p.n, out.n = p.m;
  out.a = turn(p.b), out.b = turn(p.a), out.d = turn(p.d);
  return out;
}

std::optional<BlasProduct> by_columns(const Product& p) {
  const auto left = lying(p.a, p.m, p.k), right = lying(p.b, p.k, p.n),
             result = lying(p.d, p.m, p.n, Read::as_it_lies);
  if (!left || !right || !result) return std::nullopt;
  return BlasProduct{p.m, p.n, p.k, p.batch, *left, *right, *result, p.sum_type, p.tf32};
}

}  // namespace

std::optional<BlasProduct> as_blas(const Product& product) {
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max();  // of what these libraries count
  for (const Index size : {product.m, product.n, product.k, product.batch})
    if (size > kMost) return std::nullopt;
  if (product.batch > 1 && product.d.batch_stride <= 0) return std::nullopt;
  if (product.a.batch_stride < 0 || product.b.batch_stride < 0) return std::nullopt;
  const auto direct = by_columns(product);
  return direct ? direct : by_columns(transposed(product));
}

std::string to_string(const BlasMatrix& matrix, const tile::Kernel& kernel, Index batch) {
  std::string text =
      fmt::format("view {} (%{}): {} [{}, {}], leading dimension {}", matrix.of.view,
                  kernel.views[static_cast<std::size_t>(matrix.of.view)].name, name(matrix.of.dtype),
                  matrix.rows, matrix.columns, matrix.leading_dimension);
  if (batch > 1) text += fmt::format(", the next {} elements on", matrix.of.batch_stride);
  if (matrix.of.start != 0) text += fmt::format(", from element {}", matrix.of.start);
  if (matrix.transposed) text += ", transposed";
  return text;
}

}  // namespace tilewright::cuda
