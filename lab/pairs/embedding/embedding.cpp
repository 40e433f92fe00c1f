// embedding: rows of a table by index, the first thing a language model does. Random access, whole rows.
#include <fmt/format.h>
#include <tilewright/tile/builder.h>

#include <algorithm>
#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

struct TableSizes {
  Index rows, columns, tokens;
};

// One program a token.
TileLaunch embedding_kernel(const TableSizes& s, DType dtype) {
  tile::Builder k("embedding");
  const auto table = k.view("table", dtype, {s.rows, s.columns});
  const auto index = k.view("index", DType::i64, {s.tokens});
  const auto y = k.view("y", dtype, {s.tokens, s.columns});
  const auto token = k.program_id(0);
  const auto row = k.load(index, {token});
  k.store(y, {token, 0}, k.load(table, {row, 0}, {.shape = {s.columns}, .fill = 0.0}));
  return launch_of(k.finish({{{s.tokens, 1}}}));
}

std::vector<Reference> embedding_reference(const HostArrays& in, const TableSizes& s, ThreadPool& pool) {
  Reference y{HostArray(static_cast<std::size_t>(s.tokens * s.columns))};
  for_rows(pool, s.tokens, [&](Index t) {
    const auto row = static_cast<Index>(in[1][static_cast<std::size_t>(t)]);
    const auto from = row_of(in[0], row, s.columns);
    std::copy(from.begin(), from.end(), row_of(y.values, t, s.columns).begin());
  });
  return {y};
}

Result<PairInstance> make_embedding(const Knobs& knobs, LabDevice& device) {
  const TableSizes s{knobs.integer("rows"), knobs.integer("columns"), knobs.integer("tokens")};
  const DType dtype = knobs.dtype("dtype");
  const Shape out{s.tokens, s.columns};
  TensorWorkload w{.target = "embedding",
                   .shape = fmt::format("{}x{} by {}", s.rows, s.columns, s.tokens),
                   .dtype = std::string(name(dtype))};
  w.inputs = {shared(normal_input("table", Shape{s.rows, s.columns}, dtype)),
              integer_input("index", Shape{s.tokens}, s.rows)};
  w.outputs = {{"y", dtype, out, {.storage = dtype, .kind = ToleranceRule::Kind::exact}}};
  w.cost = cost_of(w.inputs, w.outputs, 0);
  // The table's rows that are asked for are read once each: r (1 − (1 − 1/r)^t) different ones of t.
  const auto rows = static_cast<double>(s.rows);
  const double distinct = rows * -std::expm1(static_cast<double>(s.tokens) * std::log1p(-1 / rows));
  w.cost.bytes_read = 8.0 * static_cast<double>(s.tokens) +
                      distinct * static_cast<double>(s.columns) * static_cast<double>(size_bytes(dtype));
  w.unit = "GB/s";
  w.function = [](const std::vector<Tensor>& in) { return std::vector{embedding(in[0], in[1])}; };
  w.tile = [=](const LabDevice&) { return embedding_kernel(s, dtype); };
  w.reference = [s](const HostArrays& in, ThreadPool& pool) { return embedding_reference(in, s, pool); };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair embedding_pair() {
  return {.name = "embedding",
          .doc = "y[t] = table[index[t]]",
          .knobs = {{.name = "rows", .values = {Index{50304}}, .doc = "rows of the table"},
                    {.name = "columns", .values = {Index{768}}, .doc = "elements of a row"},
                    {.name = "tokens",
                     .values = {Index{16384}},
                     .doc = "rows that are picked",
                     .cuda_values = {Index{1} << 18}},
                    dtype_knob()},
          .make = make_embedding,
          .tiny = {{"rows=50", "columns=33", "tokens=70", "dtype=f32,bf16"}},
          .suites = {{"quick", {"rows=16384", "tokens=16384"}}}};
}

}  // namespace tilewright::lab
