// See matmul_kernels.h.
#include "support/matmul_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace tilewright::tile::samples {

std::string to_string(const MatmulKernel& m) {
  return fmt::format(
      "{}{} {}x{}x{}x{} blocks {}x{}x{}{}{}{}{}{}{}{}{}{}{}", name(m.dtype), m.tf32 ? " as tf32" : "",
      m.batch, m.m, m.n, m.k, m.block_m, m.block_n, m.block_k, m.a_by_columns ? " aT" : "",
      m.b_by_columns ? " bT" : "", m.bias_gelu ? " bias_gelu" : "", m.row_sums ? " row_sums" : "",
      m.maxima ? " maxima" : "", m.accumulates ? " accumulates" : "",
      m.residuals > 0 ? fmt::format(" residuals {} of {}", m.residuals, name(m.beside_type)) : "",
      m.beside > 0 ? fmt::format(" beside {} of {}", m.beside, name(m.beside_type)) : "",
      m.gap > 0 ? fmt::format(" gap {}", m.gap) : "", m.any_depth ? " any depth" : "");
}

MatmulKernel of_bytes(DType dtype, MatmulKernel m) {
  m.dtype = dtype;
  m.block_k = 128, m.b_by_columns = true;
  return m;
}
MatmulKernel as_tf32(MatmulKernel m, DType out) {
  m.dtype = DType::f32, m.out = out;
  m.block_k = 32, m.tf32 = true;
  return m;
}

namespace {

View strided(Builder& k, const std::string& name, const MatmulKernel& m, Index rows, Index columns) {
  const Index pitch = columns + m.gap;
  return k.view(name, m.dtype, {m.batch, rows, columns},
                {.strides = {{rows * pitch}, {pitch}, {1}}, .align_bytes = m.align_bytes});
}

// Values are numbered as they are made: step by step, so that every compiler makes them in one order.
Value gelu_tanh(Value x) {
  const double c = std::sqrt(2 * std::numbers::inv_pi);
  const Value cubic = x + 0.044715 * x * x * x;
  const Value gate = 1.0 + tanh(c * cubic);
  return 0.5 * x * gate;
}

}  // namespace

Kernel matmul(const MatmulKernel& m) {
  Builder k("matmul");
  k.constant("BM", m.block_m), k.constant("BN", m.block_n), k.constant("BK", m.block_k);
  const View a = m.a_by_columns ? strided(k, "a", m, m.k, m.m) : strided(k, "a", m, m.m, m.k);
  const View b = m.b_by_columns ? strided(k, "b", m, m.n, m.k) : strided(k, "b", m, m.k, m.n);
  const View c = k.view("c", m.out, {m.batch, m.m, m.n});
  const Value column = k.program_id(0) * m.block_n, row = k.program_id(1) * m.block_m,
              batch = k.program_id(2);
  const bool ragged = m.m % m.block_m != 0 || m.n % m.block_n != 0 || m.k % m.block_k != 0 || m.any_depth;
  const auto block = [&](View view, bool by_columns, Value i, Value j, Index rows, Index columns) {
    LoadOptions options{.shape = by_columns ? std::vector{columns, rows} : std::vector{rows, columns}};
    if (ragged) options.fill = 0.0;
    if (!by_columns) return k.load(view, {batch, i, j}, options);
    return k.transpose(k.load(view, {batch, j, i}, options));
  };
  const std::vector<Index> result = {m.block_m, m.block_n};
  const Value zero = is_float(m.dtype) ? k.literal(compute_dtype(m.dtype), 0.0, result)
                                       : k.literal_int(DType::i32, 0, result);
  const Operand depth = m.any_depth ? Operand(k.scalar("depth")) : Operand(m.k);
  const auto acc =
      k.loop(Index{0}, depth, m.block_k, {zero}, [&](Value i, const std::vector<Value>& carried) {
        return std::vector{k.dot(block(a, m.a_by_columns, row, i, m.block_m, m.block_k),
                                 block(b, m.b_by_columns, i, column, m.block_k, m.block_n), carried[0],
                                 m.tf32 ? DotPrecision::tf32 : DotPrecision::exact)};
      });
  Value out = acc[0];
  if (m.bias_gelu) {
    const View bias = k.view("bias", DType::f32, {m.n});
    LoadOptions options{.shape = {m.block_n}};
    if (ragged) options.fill = 0.0;
    out = gelu_tanh(out + k.expand(k.load(bias, {column}, options), 0));
  }
  const auto tile_of = [&](View view) {
    LoadOptions options{.shape = result};
    if (ragged) options.fill = 0.0;
    return k.cast(k.load(view, {batch, row, column}, options), DType::f32);
  };
  const auto beside = [&](const char* name, int i) {
    return tile_of(k.view(fmt::format("{}_{}", name, i), m.beside_type, {m.batch, m.m, m.n}));
  };
  if (m.accumulates) out = out + tile_of(c);
  for (int i = 0; i < m.residuals; ++i) out = out + beside("residual", i);
  std::vector<Value> updated;
  for (int i = 0; i < m.beside; ++i) {
    const Value last = beside("last", i);
    updated.push_back(last * 0.9 + out * 0.1);
  }
  k.store(c, {batch, row, column}, k.cast(out, m.out), {.bounded = ragged});
  for (int i = 0; i < m.beside; ++i)
    k.store(k.view(fmt::format("next_{}", i), m.beside_type, {m.batch, m.m, m.n}), {batch, row, column},
            k.cast(updated[static_cast<std::size_t>(i)], m.beside_type), {.bounded = ragged});
  if (m.row_sums) {
    const View sums = k.view("sums", DType::f32, {m.m});
    k.atomic_add(sums, {row + k.arange(m.block_m)}, k.reduce(Monoid::sum, out, 1));
  }
  if (m.maxima) {
    const Index rows = ceil_div(m.m, m.block_m), blocks = ceil_div(m.n, m.block_n);
    const View columns = k.view("columns", out.dtype(), {m.batch, rows, m.n});
    k.store(columns, {batch, k.program_id(1), column}, k.reduce(Monoid::max, out, 0), {.bounded = ragged});
    const View largest = k.view("largest", out.dtype(), {m.batch, rows, blocks});
    k.store(largest, {batch, k.program_id(1), k.program_id(0)},
            k.reduce(Monoid::max, k.reduce(Monoid::max, out, 1), 0));
  }
  return k.finish({{{m.n, m.block_n}}, {{m.m, m.block_m}}, {{m.batch, 1}}});
}

}  // namespace tilewright::tile::samples
