// The lab's workloads as tile kernels.
#include "support/hand_kernels.h"

#include "support/sample_kernels.h"

#include <tilewright/base/philox.h>
#include <limits>

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace tilewright::tile::samples {

namespace {

Value f32(Builder& k, Value v) { return k.cast(v, DType::f32); }

Value gelu_tanh(Value x) {
  const double c = std::sqrt(2 * std::numbers::inv_pi);
  return 0.5 * x * (1.0 + tanh(c * (x + 0.044715 * x * x * x)));
}

double matrix_bytes(DType dtype, Index rows, Index columns) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(size_bytes(dtype));
}

}  // namespace

Kernel elu_of(Index elements, Index block) {
  Builder k("elu");
  const View x = k.view("x", DType::f32, {elements}), y = k.view("y", DType::f32, {elements});
  const Value start = k.program_id(0) * block;
  const Value t = k.load(x, {start}, {.shape = {block}, .fill = 0.0});
  const Value positive = t > 0.f;
  const Value e = exp(t) - 1.f;
  k.store(y, {start}, where(positive, t, e), {.bounded = true});
  return k.finish({{{elements, block}}});
}

Kernel copy_of(DType dtype, Index elements, Index block) {
  Builder k("copy");
  const View x = k.view("x", dtype, {elements}), y = k.view("y", dtype, {elements});
  const Value start = k.program_id(0) * block;
  k.store(y, {start}, k.load(x, {start}, {.shape = {block}, .fill = 0.0}), {.bounded = true});
  return k.finish({{{elements, block}}});
}

Kernel softmax_rows(DType dtype, Index rows, Index columns, Index rows_per_program) {
  Builder k("softmax");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  const Value r = k.program_id(0) * rows_per_program;
  const bool several = rows_per_program > 1;
  const int axis = several ? 1 : 0;
  const std::vector<Index> shape =
      several ? std::vector<Index>{rows_per_program, columns} : std::vector<Index>{columns};
  LoadOptions options{.shape = shape};
  if (rows % rows_per_program != 0) options.fill = 0.0;
  const Value t = f32(k, k.load(x, {r, 0}, options));
  const auto spread = [&](Value v) { return several ? k.expand(v, 1) : v; };
  const Value m = k.reduce(Monoid::max, t, axis);
  k.name_value(m, "m");
  const Value e = exp(t - spread(m));
  k.name_value(e, "e");
  const Value s = k.reduce(Monoid::sum, e, axis);
  k.name_value(s, "s");
  k.store(y, {r, 0}, k.cast(e * spread(1.0 / s), dtype), {.bounded = rows % rows_per_program != 0});
  return k.finish({{{rows, rows_per_program}}});
}

// Softmax over a row's first columns; a warp of those behind them sees nothing but -inf.
Kernel masked_softmax(Index rows, Index columns, Index seen) {
  Builder k("masked_softmax");
  const View x = k.view("x", DType::bf16, {rows, columns}), y = k.view("y", DType::bf16, {rows, columns});
  const Value r = k.program_id(0);
  const Value t = f32(k, k.load(x, {r, 0}, {.shape = {columns}}));
  const Value low = k.literal(DType::f32, -std::numeric_limits<double>::infinity(), {columns});
  const Value masked = where(k.arange(columns) < seen, t, low);
  const Value e = exp(masked - k.reduce(Monoid::max, masked, 0));
  k.store(y, {r, 0}, k.cast(e * (1.0 / k.reduce(Monoid::sum, e, 0)), DType::bf16));
  return k.finish({{{rows, 1}}});
}

Kernel layernorm_gelu(DType dtype, Index rows, Index columns) {
  Builder k("layernorm_gelu");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  const View w = k.view("weight", DType::f32, {columns}), b = k.view("bias", DType::f32, {columns});
  const Value r = k.program_id(0);
  const Value t = f32(k, k.load(x, {r, 0}, {.shape = {columns}}));
  const double n = static_cast<double>(columns);
  const Value mean = k.reduce(Monoid::sum, t, 0) * (1 / n);
  k.name_value(mean, "mean");
  const Value d = t - mean;
  const Value rstd = rsqrt(k.reduce(Monoid::sum, d * d, 0) * (1 / n) + 1e-5);
  k.name_value(rstd, "rstd");
  const Value h = d * rstd * k.load(w, {0}, {.shape = {columns}}) + k.load(b, {0}, {.shape = {columns}});
  k.store(y, {r, 0}, k.cast(gelu_tanh(h), dtype));
  return k.finish({{{rows, 1}}});
}

Kernel add_rmsnorm(DType dtype, Index rows, Index columns) {
  Builder k("add_rmsnorm");
  const View x = k.view("x", dtype, {rows, columns}), res = k.view("residual", dtype, {rows, columns});
  const View w = k.view("weight", dtype, {columns});
  const View s = k.view("s", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  const Value r = k.program_id(0);
  const Value sum =
      f32(k, k.load(x, {r, 0}, {.shape = {columns}})) + f32(k, k.load(res, {r, 0}, {.shape = {columns}}));
  k.store(s, {r, 0}, k.cast(sum, dtype));
  const Value scale = rsqrt(k.reduce(Monoid::sum, sum * sum, 0) * (1 / static_cast<double>(columns)) + 1e-6);
  k.name_value(scale, "scale");
  k.store(y, {r, 0}, k.cast(sum * scale * f32(k, k.load(w, {0}, {.shape = {columns}})), dtype));
  return k.finish({{{rows, 1}}});
}

Kernel dropout_add_layernorm(DType dtype, Index rows, Index columns, double p) {
  Builder k("dropout_add_layernorm");
  const View x = k.view("x", dtype, {rows, columns}), res = k.view("residual", dtype, {rows, columns});
  const View w = k.view("weight", dtype, {columns}), b = k.view("bias", dtype, {columns});
  const View y = k.view("y", dtype, {rows, columns});
  const Value seed = k.scalar("seed");
  const Value r = k.program_id(0);
  const Value word = k.random(seed, r * columns + k.arange(columns));
  const Value keep = word >= static_cast<Index>(p * 4294967296.0);
  const Value xv = f32(k, k.load(x, {r, 0}, {.shape = {columns}}));
  const Value t = where(keep, xv * (1 / (1 - p)), 0.0) + f32(k, k.load(res, {r, 0}, {.shape = {columns}}));
  const double n = static_cast<double>(columns);
  const Value mean = k.reduce(Monoid::sum, t, 0) * (1 / n);
  const Value d = t - mean;
  const Value rstd = rsqrt(k.reduce(Monoid::sum, d * d, 0) * (1 / n) + 1e-5);
  const Value wv = f32(k, k.load(w, {0}, {.shape = {columns}}));
  const Value h = d * rstd * wv + f32(k, k.load(b, {0}, {.shape = {columns}}));
  k.store(y, {r, 0}, k.cast(h, dtype));
  return k.finish({{{rows, 1}}});
}

Kernel cross_entropy(DType dtype, Index rows, Index columns) {
  Builder k("cross_entropy");
  const View x = k.view("logits", dtype, {rows, columns}), g = k.view("gradient", dtype, {rows, columns});
  const View label = k.view("label", DType::i64, {rows}), loss = k.view("loss", DType::f32, {rows});
  const Value r = k.program_id(0);
  const Value t = f32(k, k.load(x, {r, 0}, {.shape = {columns}}));
  const Value m = k.reduce(Monoid::max, t, 0);
  k.name_value(m, "m");
  const Value e = exp(t - m);
  k.name_value(e, "e");
  const Value s = k.reduce(Monoid::sum, e, 0);
  k.name_value(s, "s");
  const Value target = k.load(label, {r});
  k.name_value(target, "target");
  const Value hit = k.arange(columns) == target;
  const Value picked = k.reduce(Monoid::sum, where(hit, t, 0.0), 0);
  k.store(loss, {r}, m + log(s) - picked);
  const Value p = e * (1.0 / s);
  const double scale = 1 / static_cast<double>(rows);
  k.store(g, {r, 0}, k.cast((p - where(hit, 1.0, k.literal(DType::f32, 0))) * scale, dtype));
  return k.finish({{{rows, 1}}});
}

Kernel sum_partials(Index elements, Index block, Index programs) {
  Builder k("sum_partials");
  const View x = k.view("x", DType::f32, {elements}), y = k.view("partial", DType::f32, {programs});
  const Value p = k.program_id(0);
  const Index each = round_up(ceil_div(elements, programs), block);
  const Value first = p * each;
  const Value end = min(first + each, elements);
  const auto acc = k.loop(first, end, block, {k.literal(DType::f32, 0, {block})},
                          [&](Value i, const std::vector<Value>& c) {
                            return std::vector<Value>{c[0] + k.load(x, {i}, {.shape = {block}, .fill = 0.0})};
                          });
  k.store(y, {p}, k.reduce(Monoid::sum, acc[0], 0));
  return k.finish({{{programs, 1}}});
}

Kernel transpose_tiles(DType dtype, Index rows, Index columns, Index edge) {
  Builder k("transpose");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {columns, rows});
  const Value j = k.program_id(0) * edge, i = k.program_id(1) * edge;
  const Value t = k.load(x, {i, j}, {.shape = {edge, edge}, .fill = 0.0});
  k.store(y, {j, i}, k.transpose(t), {.bounded = true});
  return k.finish({{{columns, edge}}, {{rows, edge}}});
}

namespace {

// y[i] = table[index[i]] where 0 ≤ index[i] < entries, else -1; counts[index[i]] += 1.
Kernel gather_and_count(Index n, Index entries) {
  Builder k("gather_and_count");
  const View table = k.view("table", DType::bf16, {entries}), index = k.view("index", DType::i64, {n});
  const View y = k.view("y", DType::bf16, {n}), counts = k.view("counts", DType::i32, {entries});
  const Index block = 256;
  const Value start = k.program_id(0) * block;
  const Value i = k.load(index, {start}, {.shape = {block}, .fill = -1.0});
  const Value inside = (i >= Index{0}) & (i < entries);
  const Value t = k.gather(table, {i}, {.mask = inside, .fill = -1.0});
  k.store(y, {start}, t, {.bounded = true});
  k.atomic_add(counts, {i}, k.literal_int(DType::i32, 1, {block}), inside);
  return k.finish({{{n, block}}});
}

Kernel cumulative_sum(Index rows, Index columns, int axis) {
  Builder k(fmt::format("cumulative_sum_{}", axis));
  const View x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows, columns});
  const Value t = k.load(x, {0, 0}, {.shape = {rows, columns}});
  k.store(y, {0, 0}, k.scan(Monoid::sum, t, axis));
  return k.finish({{{1, 1}}});
}

// Positions of the elements of each row from the largest on, and of each column from the smallest on.
Kernel sorted_positions(DType dtype, Index rows, Index columns) {
  Builder k("sorted_positions");
  const View x = k.view("x", dtype, {rows, columns}), y = k.view("y", DType::i32, {rows, columns}),
             z = k.view("z", DType::i32, {rows, columns});
  const Value t = k.load(x, {0, 0}, {.shape = {rows, columns}});
  const Value key = compute_dtype(dtype) == dtype ? t : k.cast(t, compute_dtype(dtype));
  k.store(y, {0, 0}, k.argsort(key, 1, Order::descending));
  k.store(z, {0, 0}, k.argsort(key, 0));
  return k.finish({{{1, 1}}});
}

// Index of the largest of each row and of the smallest of each column.
Kernel extremes(Index rows, Index columns) {
  Builder k("extremes");
  const View x = k.view("x", DType::f32, {rows, columns});
  const View top = k.view("top", DType::i64, {rows}), low = k.view("low", DType::i64, {columns});
  const Value t = k.load(x, {0, 0}, {.shape = {rows, columns}});
  k.store(top, {0}, k.reduce(Monoid::argmax, t, 1));
  k.store(low, {0}, k.reduce(Monoid::argmin, t, 0));
  return k.finish({{{1, 1}}});
}

// The largest and the smallest of each row of 16-bit floats.
Kernel row_range(DType dtype, Index rows, Index columns, Index rows_per_program) {
  Builder k("row_range");
  const View x = k.view("x", dtype, {rows, columns});
  const View most = k.view("most", DType::f32, {rows}), least = k.view("least", dtype, {rows});
  const Value r = k.program_id(0) * rows_per_program;
  const Value t = k.load(x, {r, 0}, {.shape = {rows_per_program, columns}});
  k.store(most, {r}, k.reduce(Monoid::max, f32(k, t), 1));
  k.store(least, {r}, k.cast(k.reduce(Monoid::min, f32(k, t), 1), dtype));
  return k.finish({{{rows, rows_per_program}}});
}

// Both sides of a branch, and a loop whose length the program decides.
Kernel branch_and_loop(Index n) {
  Builder k("branch_and_loop");
  const Index block = 64;
  const View x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  const Value p = k.program_id(0);
  const Value start = p * block;
  const Value t = k.load(x, {start}, {.shape = {block}, .fill = 1.0});
  const auto doubled = k.loop(0, p + Index{1}, 1, {t}, [&](Value, const std::vector<Value>& c) {
    return std::vector<Value>{c[0] * 0.5 + k.reduce(Monoid::max, c[0], 0)};
  });
  const auto out = k.branch(
      p % Index{2} == Index{0}, [&] { return std::vector<Value>{doubled[0] + 1.0}; },
      [&] { return std::vector<Value>{-doubled[0]}; });
  k.store(y, {start}, out[0], {.bounded = true});
  return k.finish({{{n, block}}});
}

HandKernel hand(std::string name, Kernel kernel, double bytes = 0, std::vector<std::int64_t> scalars = {}) {
  return {std::move(name), std::move(kernel), std::move(scalars), bytes};
}

}  // namespace

std::vector<HandKernel> small_kernels() {
  std::vector<HandKernel> all;
  const auto add = [&](std::string name, Kernel kernel, std::vector<std::int64_t> scalars = {}) {
    all.push_back(hand(std::move(name), std::move(kernel), 0, std::move(scalars)));
  };
  add("elu", elu(), {1000});
  add("copy_f16", copy_of(DType::f16, 1001, 512));
  for (const Index columns : {1, 31, 257, 1024, 5000})
    add(fmt::format("softmax_{}", columns), softmax_rows(DType::bf16, 5, columns, 1));
  for (const Index columns : {8, 33, 256, 1000})
    add(fmt::format("softmax_tile_{}", columns), softmax_rows(DType::bf16, 13, columns, 4));
  add("masked_softmax", masked_softmax(3, 2048, 300));
  add("softmax_f32", softmax_rows(DType::f32, 5, 1003, 1));
  add("softmax_looped", row_softmax_looped(DType::bf16, 3, 1000, 256));
  add("layernorm_gelu", layernorm_gelu(DType::bf16, 3, 768));
  add("add_rmsnorm", add_rmsnorm(DType::bf16, 3, 1000));
  add("dropout_add_layernorm", dropout_add_layernorm(DType::bf16, 3, 512, 0.1), {42});
  for (const Index columns : {1571, 2048})
    add(fmt::format("cross_entropy_{}", columns), cross_entropy(DType::bf16, 4, columns));
  add("sum_partials", sum_partials(10007, 1024, 4));
  add("column_sums_atomic", column_sums_atomic(100, 70, 32, 64));
  add("column_sums_partial", column_sums_partial(100, 70, 32, 64));
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8})
    add(fmt::format("transpose_{}", tilewright::name(dtype)), transpose_tiles(dtype, 70, 100, 32));
  add("gather_and_count", gather_and_count(1000, 37));
  add("cumulative_sum_rows", cumulative_sum(5, 300, 1));
  add("cumulative_sum_columns", cumulative_sum(50, 33, 0));
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::u8, DType::i64})
    add(fmt::format("sorted_positions_{}", tilewright::name(dtype)), sorted_positions(dtype, 9, 130));
  add("extremes", extremes(37, 129));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    add(fmt::format("row_range_{}", tilewright::name(dtype)), row_range(dtype, 6, 264, 2));
    add(fmt::format("long_row_range_{}", tilewright::name(dtype)), row_range(dtype, 3, 4104, 1));
  }
  add("branch_and_loop", branch_and_loop(500));
  add("matmul_gelu",
      matmul_gelu(DType::bf16, {.m = 70, .n = 50, .k = 40, .block_m = 32, .block_n = 32, .block_k = 16}));
  add("matmul_gelu_f32",
      matmul_gelu(DType::f32, {.m = 33, .n = 65, .k = 19, .block_m = 32, .block_n = 64, .block_k = 8}));
  add("attention",
      attention(DType::bf16, {.heads = 2, .tokens = 80, .width = 32, .block_m = 32, .block_n = 32}));
  return all;
}

std::vector<HandKernel> lab_kernels() {
  std::vector<HandKernel> all;
  const Index elements = Index{1} << 28;
  const DType bf16 = DType::bf16;
  const auto add = [&](std::string name, Kernel kernel, double bytes,
                       std::vector<std::int64_t> scalars = {}) {
    all.push_back(hand(std::move(name), std::move(kernel), bytes, std::move(scalars)));
  };
  const double f32_bytes = 4.0 * static_cast<double>(elements);
  add("copy f32 2^28", copy_of(DType::f32, elements, 4096), 2 * f32_bytes);
  add("elu f32 2^28", elu_of(elements, 4096), 2 * f32_bytes);
  add("add_rmsnorm bf16 8192x4096", add_rmsnorm(bf16, 8192, 4096), 4 * matrix_bytes(bf16, 8192, 4096));
  add("layernorm_gelu bf16 8192x4096", layernorm_gelu(bf16, 8192, 4096), 2 * matrix_bytes(bf16, 8192, 4096));
  add("softmax bf16 65536x1024", softmax_rows(bf16, 65536, 1024, 4), 2 * matrix_bytes(bf16, 65536, 1024));
  add("softmax bf16 8192x8192", softmax_rows(bf16, 8192, 8192, 1), 2 * matrix_bytes(bf16, 8192, 8192));
  add("softmax bf16 1024x65536", softmax_rows(bf16, 1024, 65536, 1), 2 * matrix_bytes(bf16, 1024, 65536));
  add("cross_entropy bf16 8192x50304", cross_entropy(bf16, 8192, 50304), 2 * matrix_bytes(bf16, 8192, 50304));
  add("dropout_add_layernorm bf16 8192x4096", dropout_add_layernorm(bf16, 8192, 4096, 0.1),
      3 * matrix_bytes(bf16, 8192, 4096), {42});
  add("sum f32 2^28", sum_partials(elements, 4096, 132 * 8), f32_bytes);
  add("transpose f32 8192x8192", transpose_tiles(DType::f32, 8192, 8192, 64),
      2 * matrix_bytes(DType::f32, 8192, 8192));
  add("transpose bf16 8192x8192", transpose_tiles(bf16, 8192, 8192, 64), 2 * matrix_bytes(bf16, 8192, 8192));
  return all;
}

}  // namespace tilewright::tile::samples
