// The sample kernels, written as a user would.
#include "support/sample_kernels.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tilewright::tile::samples {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value as_f32(Builder& k, Value v) { return k.cast(v, DType::f32); }
}  // namespace

Kernel elu(Index block) {
  Builder k("elu");
  const Value n = k.scalar("n");
  const View x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  k.constant("BLOCK", block);
  const Value start = k.program_id(0) * block;
  k.name_value(start, "start");
  const Value t = k.load(x, {start}, {.shape = {block}, .fill = 0.0});
  // In separate statements: compilers differ in the order in which they evaluate arguments.
  const Value positive = t > 0.f;
  const Value e = exp(t) - 1.f;
  k.store(y, {start}, where(positive, t, e), {.bounded = true});
  return k.finish({{{n, block}}});
}

Kernel row_softmax(DType dtype, Index rows, Index columns) {
  Builder k("row_softmax");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  const Value r = k.program_id(0);
  const Value t = as_f32(k, k.load(x, {r, 0}, {.shape = {columns}}));
  const Value m = k.reduce(Monoid::max, t, 0);
  k.name_value(m, "m");
  const Value e = exp(t - m);
  const Value s = k.reduce(Monoid::sum, e, 0);
  k.name_value(s, "s");
  k.store(y, {r, 0}, k.cast(e * (1.0 / s), dtype));
  return k.finish({{{rows, 1}}});
}

Kernel row_softmax_looped(DType dtype, Index rows, Index columns, Index block) {
  Builder k("row_softmax_looped");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  k.constant("BN", block);
  const Value r = k.program_id(0);
  const auto tile_at = [&](Value i) {
    return as_f32(k, k.load(x, {r, i}, {.shape = {block}, .fill = -kInfinity}));
  };
  const Value m0 = k.literal(DType::f32, -kInfinity), s0 = k.literal(DType::f32, 0);
  const auto last = k.loop(0, columns, block, {m0, s0}, [&](Value i, const std::vector<Value>& carried) {
    const Value t = tile_at(i);
    const Value m = max(carried[0], k.reduce(Monoid::max, t, 0));
    // Before the first finite element both are -inf, and their difference would be NaN.
    const Value safe = where(m == -kInfinity, 0.0, m);
    const Value s = carried[1] * exp(carried[0] - safe) + k.reduce(Monoid::sum, exp(t - safe), 0);
    return std::vector<Value>{m, s};
  });
  k.loop(0, columns, block, {}, [&](Value i, const std::vector<Value>&) {
    const Value e = exp(tile_at(i) - last[0]);
    k.store(y, {r, i}, k.cast(e * (1.0 / last[1]), dtype), {.bounded = true});
    return std::vector<Value>{};
  });
  return k.finish({{{rows, 1}}});
}

Kernel matmul_gelu(DType dtype, const MatmulSizes& s) {
  Builder k("matmul_gelu");
  const View a = k.view("a", dtype, {s.m, s.k}), b = k.view("b", dtype, {s.k, s.n});
  const View bias = k.view("bias", DType::f32, {s.n}), c = k.view("c", dtype, {s.m, s.n});
  k.constant("BM", s.block_m);
  k.constant("BN", s.block_n);
  k.constant("BK", s.block_k);
  const Value row = k.program_id(0) * s.block_m, column = k.program_id(1) * s.block_n;
  const Value zero = k.literal(compute_dtype(dtype), 0, {s.block_m, s.block_n});
  const auto acc = k.loop(0, s.k, s.block_k, {zero}, [&](Value i, const std::vector<Value>& carried) {
    const Value ta = k.load(a, {row, i}, {.shape = {s.block_m, s.block_k}, .fill = 0.0});
    const Value tb = k.load(b, {i, column}, {.shape = {s.block_k, s.block_n}, .fill = 0.0});
    return std::vector<Value>{k.dot(ta, tb, carried[0])};
  });
  const Value tb = k.cast(k.load(bias, {column}, {.shape = {s.block_n}, .fill = 0.0}), acc[0].dtype());
  const Value h = acc[0] + k.expand(tb, 0);
  const double c0 = std::sqrt(2 * std::numbers::inv_pi);
  const Value gelu = 0.5 * h * (1.0 + tanh(c0 * (h + 0.044715 * h * h * h)));
  k.store(c, {row, column}, k.cast(gelu, dtype), {.bounded = true});
  return k.finish({{{s.m, s.block_m}}, {{s.n, s.block_n}}});
}

Kernel attention(DType dtype, const AttentionSizes& s) {
  Builder k("attention");
  const std::vector<Builder::SizeArg> shape{s.heads, s.tokens, s.width};
  const View q = k.view("q", dtype, shape), key = k.view("k", dtype, shape), v = k.view("v", dtype, shape);
  const View o = k.view("o", dtype, shape), lse = k.view("lse", DType::f32, {s.heads, s.tokens});
  const Value first = k.program_id(0) * s.block_m, head = k.program_id(1);
  const std::vector<Index> rows{s.block_m};
  const Value tq = k.load(q, {head, first, 0}, {.shape = {s.block_m, s.width}, .fill = 0.0});
  const Value qi = k.expand(first + k.arange(s.block_m), 1);
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(s.width));
  const std::vector<Value> initial{k.literal(DType::f32, -kInfinity, rows), k.literal(DType::f32, 0, rows),
                                   k.literal(DType::f32, 0, {s.block_m, s.width})};
  const Value end = s.causal ? min(first + s.block_m, s.tokens) : k.literal_int(DType::i64, s.tokens);
  const auto out = k.loop(0, end, s.block_n, initial, [&](Value n, const std::vector<Value>& carried) {
    const Value tk = k.load(key, {head, n, 0}, {.shape = {s.block_n, s.width}, .fill = 0.0});
    const Value tv = k.load(v, {head, n, 0}, {.shape = {s.block_n, s.width}, .fill = 0.0});
    const Value zero = k.literal(DType::f32, 0, {s.block_m, s.block_n});
    const Value score = k.dot(tq, k.transpose(tk), zero) * scale;
    const Value ki = k.expand(n + k.arange(s.block_n), 0);
    const Value seen = s.causal ? (ki <= qi) & (ki < s.tokens) : (ki < s.tokens) & (qi == qi);
    const Value masked = where(seen, score, -kInfinity);
    const Value m = max(carried[0], k.reduce(Monoid::max, masked, 1));
    const Value safe = where(m == -kInfinity, 0.0, m);  // a row without any key stays 0, never NaN
    const Value p = exp2(masked - k.expand(safe, 1));
    const Value ratio = exp2(carried[0] - safe);
    const Value l = carried[1] * ratio + k.reduce(Monoid::sum, p, 1);
    return std::vector<Value>{m, l, k.dot(k.cast(p, dtype), tv, carried[2] * k.expand(ratio, 1))};
  });
  const Value l = where(out[1] == 0.0, 1.0, out[1]);
  k.store(o, {head, first, 0}, k.cast(out[2] / k.expand(l, 1), dtype), {.bounded = true});
  k.store(lse, {head, first}, out[0] + log2(l), {.bounded = true});
  return k.finish({{{s.tokens, s.block_m}}, {{s.heads, 1}}});
}

namespace {
// Sum over one block of rows: f32 [block_columns].
Value block_sum(Builder& k, View x, Index block_rows, Index block_columns) {
  const Value t = k.load(x, {k.program_id(0) * block_rows, k.program_id(1) * block_columns},
                         {.shape = {block_rows, block_columns}, .fill = 0.0});
  return k.reduce(Monoid::sum, t, 0);
}
}  // namespace

Kernel column_sums_atomic(Index rows, Index columns, Index block_rows, Index block_columns) {
  Builder k("column_sums_atomic");
  const View x = k.view("x", DType::f32, {rows, columns}), sums = k.view("sums", DType::f32, {columns});
  const Value s = block_sum(k, x, block_rows, block_columns);
  const Value j = k.program_id(1) * block_columns + k.arange(block_columns);
  k.atomic_add(sums, {j}, s, j < columns);
  return k.finish({{{rows, block_rows}}, {{columns, block_columns}}});
}

Kernel column_sums_partial(Index rows, Index columns, Index block_rows, Index block_columns) {
  Builder k("column_sums_partial");
  const View x = k.view("x", DType::f32, {rows, columns});
  const View partial = k.view("partial", DType::f32, {ceil_div(rows, block_rows), columns});
  const Value s = block_sum(k, x, block_rows, block_columns);
  k.store(partial, {k.program_id(0), k.program_id(1) * block_columns}, s, {.bounded = true});
  return k.finish({{{rows, block_rows}}, {{columns, block_columns}}});
}

}  // namespace tilewright::tile::samples
