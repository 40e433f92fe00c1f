// fp8_training_matmul: a layer's product in training, y = x w, and both products of its gradient, dx = dy wT
// and dw = xT dy, of 8-bit floats whose scales are found in the same call (current scaling). x and dy come in
// bf16, as layers hand them on; the weight is f32. Beside it the same in bf16. Bound by arithmetic.
#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

// Tensor cores align what they add to the largest term and keep about 14 bits, as in gemm_fp8.
constexpr double kKeptBits = 0x1p-13;

// How one operand is rounded: to a type, behind a scale for each block of so many rows and columns.
struct Rounding {
  DType type = DType::bf16;
  bool scaled = false;
  Index rows = 0, columns = 0;  // of a block; 0: all
};

// What the products read, and the elements of which f32 may have taken the neighbour: their scale, its
// reciprocal and the product with it are rounded before the element is.
struct RoundedMatrix {
  struct Doubt {
    Index row, column;
    double gap;
  };
  Index rows = 0, columns = 0;
  HostArray values;
  std::vector<Doubt> doubts;
};

RoundedMatrix rounded(const HostArray& matrix, Index rows, Index columns, const Rounding& how) {
  constexpr double kOfScales = 4 * 0x1p-24;
  RoundedMatrix out{rows, columns, matrix, {}};
  const Index down = how.rows > 0 ? how.rows : rows, across = how.columns > 0 ? how.columns : columns;
  const auto at = [&](Index r, Index c) -> double& {
    return out.values[static_cast<std::size_t>(r * columns + c)];
  };
  for (Index top = 0; top < rows; top += down)
    for (Index left = 0; left < columns; left += across) {
      const Index bottom = std::min(rows, top + down), right = std::min(columns, left + across);
      double scale = 1;
      if (how.scaled) {
        double most = 0x1p-100;
        for (Index r = top; r < bottom; ++r)
          for (Index c = left; c < right; ++c) most = std::max(most, std::fabs(at(r, c)));
        scale = most / max_finite(how.type);
      }
      for (Index r = top; r < bottom; ++r)
        for (Index c = left; c < right; ++c) {
          const double v = at(r, c) / scale;
          at(r, c) = round_to(how.type, v) * scale;
          if (!how.scaled) continue;
          const double low = round_to(how.type, v * (1 - kOfScales)),
                       high = round_to(how.type, v * (1 + kOfScales));
          if (low != high) out.doubts.push_back({r, c, std::fabs(high - low) * scale});
        }
    }
  return out;
}

RoundedMatrix transposed(RoundedMatrix m) {
  m.values = host_transpose(m.values.data(), m.rows, m.columns, m.columns);
  std::swap(m.rows, m.columns);
  for (RoundedMatrix::Doubt& d : m.doubts) std::swap(d.row, d.column);
  return m;
}

Reference reference_of(const RoundedMatrix& a, const RoundedMatrix& b, bool eight_bits,
                       const OutputSpec& output, ThreadPool& pool) {
  const Index m = a.rows, n = b.columns;
  HostProduct product = host_product(a.values, b.values, {.m = m, .n = n, .k = a.columns}, pool);
  const ErrorScale scale(output.rule, m * n);
  HostArray errors(static_cast<std::size_t>(m * n));  // of neighbours
  for (const auto& d : a.doubts)
    for (Index j = 0; j < n; ++j)
      errors[static_cast<std::size_t>(d.row * n + j)] +=
          d.gap * std::fabs(b.values[static_cast<std::size_t>(d.column * n + j)]);
  for (const auto& d : b.doubts)
    for (Index i = 0; i < m; ++i)
      errors[static_cast<std::size_t>(i * n + d.column)] +=
          d.gap * std::fabs(a.values[static_cast<std::size_t>(i * a.columns + d.row)]);
  Reference out{std::move(product.values), HostArray(static_cast<std::size_t>(m * n))};
  for_rows(pool, m, [&](Index i) {
    for (Index j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * n + j);
      const double size = product.size(i, j);
      out.magnitude[at] =
          scale(std::fabs(out.values[at]), size) + scale.of(errors[at] + (eight_bits ? kKeptBits * size : 0));
    }
  });
  return out;
}

std::vector<Reference> training_reference(const HostArrays& in, const ProductSizes& s, Precision precision,
                                          const std::vector<OutputSpec>& outputs, ThreadPool& pool) {
  constexpr Index kBlock = 128;
  Rounding x, w, dy, x_of_dw, dy_of_dw;  // in bf16
  if (precision == Precision::fp8) {
    x = w = x_of_dw = {.type = DType::f8e4m3, .scaled = true};
    dy = dy_of_dw = {.type = DType::f8e5m2, .scaled = true};
  } else if (precision == Precision::fp8_block) {
    const auto blocks = [](Index rows, Index columns) {
      return Rounding{.type = DType::f8e4m3, .scaled = true, .rows = rows, .columns = columns};
    };
    x = dy = blocks(1, kBlock), w = dy_of_dw = blocks(kBlock, kBlock), x_of_dw = blocks(kBlock, 1);
  }
  const bool eight = is_fp8(precision);
  const RoundedMatrix weight = rounded(in[1], s.k, s.n, w);
  return {reference_of(rounded(in[0], s.m, s.k, x), weight, eight, outputs[0], pool),
          reference_of(rounded(in[2], s.m, s.n, dy), transposed(weight), eight, outputs[1], pool),
          reference_of(transposed(rounded(in[0], s.m, s.k, x_of_dw)), rounded(in[2], s.m, s.n, dy_of_dw),
                       eight, outputs[2], pool)};
}

// y, dx, dw.
std::vector<Tensor> product_and_gradients(const std::vector<Tensor>& in) {
  const auto y = [](const Tensor& x, const Tensor& w) { return matmul(cast(x, DType::f32), w); };
  const auto along = [&](const Tensor& x, const Tensor& w) { return sum(y(x, w) * cast(in[2], DType::f32)); };
  const auto [dx, dw] = grad<0, 1>(along)(in[0], in[1]);
  return {cast(y(in[0], in[1]), DType::bf16), dx, cast(dw, DType::bf16)};
}

Result<PairInstance> make_fp8_training_matmul(const Knobs& knobs, LabDevice& device) {
  const ProductSizes s = product_sizes(knobs, "fp8_training_matmul", MatrixOrder::rows);
  const std::string& text = knobs.text("precision");
  const Precision precision = parse_precision(text).value();
  TensorWorkload w{.target = "fp8_training_matmul", .shape = s.text(), .dtype = text};
  w.inputs = {normal_input("x", Shape{s.m, s.k}, DType::bf16),
              normal_input("w", Shape{s.k, s.n}, DType::f32, {.deviation = 0.02}),
              normal_input("dy", Shape{s.m, s.n}, DType::bf16, {.deviation = 1e-3})};
  const auto rule = [](Index depth) {
    return ToleranceRule{.storage = DType::bf16, .reduction = depth, .operations = 6};
  };
  w.outputs = {{"y", DType::bf16, Shape{s.m, s.n}, rule(s.k)},
               {"dx", DType::bf16, Shape{s.m, s.k}, rule(s.n)},
               {"dw", DType::bf16, Shape{s.k, s.n}, rule(s.m)}};
  w.cost = product_cost(w.inputs, w.outputs, 3 * s.flops(), is_fp8(precision) ? DType::f8e4m3 : DType::bf16);
  w.unit = "GFLOP/s";
  w.function = product_and_gradients;
  w.options = {.precision = precision};
  w.op_by_op = false;  // a precision is of compiled programs
  w.peer_parameters = {{"precision", text}};
  if (precision == Precision::fp8_block)
    w.no_peers = "PyTorch has no product with scales of blocks for all three";
  w.reference = [s, precision, outputs = w.outputs](const HostArrays& in, ThreadPool& pool) {
    return training_reference(in, s, precision, outputs, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair fp8_training_matmul_pair() {
  const std::vector<KnobValue> precisions = {std::string("bf16"), std::string("fp8"),
                                             std::string("fp8-block")};
  return {.name = "fp8_training_matmul",
          .doc = "y = x w and its gradients, quantised inside: 8-bit floats beside bf16",
          .knobs = {{.name = "shape",
                     .values = {Shape{512, 512, 512}},
                     .doc = "m x n x k: y (m, n) = x (m, k) · w (k, n)",
                     .cuda_values = {Shape{8192, 3072, 768}, Shape{8192, 8192, 8192}}},
                    {.name = "precision",
                     .values = precisions,
                     .doc = "of the products, as CompileOptions::precision",
                     .choices = precisions}},
          .make = make_fp8_training_matmul,
          .tiny = {{"shape=37x53x131", "precision=bf16,fp8,fp8-block"}},
          .suites = {{"products", {"shape=256x256x256"}}}};
}

}  // namespace tilewright::lab
