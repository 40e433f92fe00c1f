// Operands, the vector x, and the bound of each row.
#include "support/freivalds.h"

#include <fmt/format.h>
#include <tilewright/base/philox.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace tilewright::test {

namespace {

constexpr Index kAlignment = 256;

// A matrix in memory of the promised alignment, and as numbers.
class Matrix {
 public:
  Matrix(DType dtype, Index rows, Index columns, bool by_columns)
      : dtype_(dtype), rows_(rows), columns_(columns), by_columns_(by_columns) {
    bytes_ = round_up(rows * columns * static_cast<Index>(size_bytes(dtype)), kAlignment);
    const auto bytes = static_cast<std::size_t>(bytes_);
    data_.reset(static_cast<char*>(::operator new(bytes, std::align_val_t(kAlignment))));
    std::memset(data_.get(), 0xFF, bytes);  // NaN in every float type
  }

  void fill_uniform(std::uint64_t seed) {
    for (std::size_t i = 0; i < elements(); ++i)
      store_f64(at(i), dtype_, 2.0 * uniform_f32(philox4x32(seed, i)[0]) - 1);
  }
  // Its values, row by row.
  std::vector<double> values() const {
    std::vector<double> v(elements());
    for (Index i = 0; i < rows_; ++i)
      for (Index j = 0; j < columns_; ++j)
        v[static_cast<std::size_t>(i * columns_ + j)] =
            load_f64(at(static_cast<std::size_t>(by_columns_ ? j * rows_ + i : i * columns_ + j)), dtype_);
    return v;
  }
  HostView view() const { return {data_.get(), bytes_, 0}; }

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
  };
  std::size_t elements() const { return static_cast<std::size_t>(rows_ * columns_); }
  char* at(std::size_t i) const { return data_.get() + i * size_bytes(dtype_); }

  DType dtype_;
  Index rows_, columns_, bytes_ = 0;
  bool by_columns_;
  std::unique_ptr<char, Free> data_;
};

std::vector<double> multiply(const std::vector<double>& matrix, const std::vector<double>& x) {
  const std::size_t columns = x.size();
  std::vector<double> y(matrix.size() / columns);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j) y[i] += matrix[i * columns + j] * x[j];
  return y;
}

double norm(const double* v, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += v[i] * v[i];
  return std::sqrt(sum);
}

}  // namespace

std::string check_large_product(const tile::samples::MatmulKernel& p, const RunOnBackend& backend,
                                std::uint64_t seed) {
  TW_CHECK(p.batch == 1 && p.gap == 0 && !p.bias_gelu && !p.row_sums && !p.tf32 && !p.any_depth,
           "a plain product");
  TW_CHECK(is_float(p.out) && size_bytes(p.dtype) >= 2, "sums of 8-bit products have another bound");
  Matrix a(p.dtype, p.m, p.k, p.a_by_columns), b(p.dtype, p.k, p.n, p.b_by_columns),
      c(p.out, p.m, p.n, false);
  a.fill_uniform(2 * seed);
  b.fill_uniform(2 * seed + 1);
  if (const Status ran = backend(tile::samples::matmul(p), {a.view(), b.view(), c.view()}, {}); !ran)
    return ran.error().message;

  std::vector<double> x(static_cast<std::size_t>(p.n));
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = philox4x32(~seed, j)[0] % 2 == 0 ? 1 : -1;
  const std::vector<double> a_values = a.values(), b_values = b.values(), c_values = c.values();
  const std::vector<double> want = multiply(a_values, multiply(b_values, x)), got = multiply(c_values, x);

  // Tensor cores cut off what they add, an error of twice the rounding's.
  const double u = 2 * unit_roundoff(DType::f32);
  const auto k = static_cast<double>(p.k);
  const double gamma = k * u / (1 - k * u), stored = unit_roundoff(p.out);
  const double b_norm = norm(b_values.data(), b_values.size());
  const double deviations = std::sqrt(2 * std::log(2 * static_cast<double>(p.m) / 1e-12));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double row = norm(&c_values[i * x.size()], x.size());
    const double sums =
        gamma * norm(&a_values[i * static_cast<std::size_t>(p.k)], static_cast<std::size_t>(p.k)) * b_norm;
    const double bound = deviations * (stored * row + (1 + stored) * sums);
    // Also when anything is NaN.
    if (!(std::abs(got[i] - want[i]) <= bound))
      return fmt::format("row {} of the product times x is {}, not {} within {}", i, got[i], want[i], bound);
  }
  return "";
}

}  // namespace tilewright::test
