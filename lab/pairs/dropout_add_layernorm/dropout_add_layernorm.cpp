// dropout_add_layernorm: layer_norm(r + dropout(x)) · w + b, the end of a transformer's sub-layer in
// training. The random mask is never stored: each element's bits are a function of the seed and its position.
#include <tilewright/base/philox.h>
#include <tilewright/tile/builder.h>

#include <cmath>

#include "pairs/host_norm.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

struct RowSizes {
  Index rows, columns;
  double p;  // of dropping
};

Index threshold(double p) { return static_cast<Index>(std::llround(p * 0x1p32)); }

TileLaunch dropout_add_layernorm_kernel(const RowSizes& s, DType dtype) {
  tile::Builder k("dropout_add_layernorm");
  const Index columns = s.columns;
  const auto x = k.view("x", dtype, {s.rows, columns}), r = k.view("r", dtype, {s.rows, columns});
  const auto w = k.view("w", dtype, {columns}), b = k.view("b", dtype, {columns});
  const auto seed = k.view("seed", DType::i64, {1}), y = k.view("y", dtype, {s.rows, columns});
  const auto row = k.program_id(0);
  const auto bits = k.random(k.load(seed, {0}), k.arange(columns) + row * columns);
  const auto dropped = where(bits >= threshold(s.p), load_row(k, x, row, columns) * (1 / (1 - s.p)), 0.0);
  const auto t = standardised(k, load_row(k, r, row, columns) + dropped, columns);
  const auto scaled = t * load_vector(k, w, columns) + load_vector(k, b, columns);
  k.store(y, {row, 0}, narrow(k, scaled, dtype));
  return launch_of(k.finish({{{s.rows, 1}}}));
}

std::vector<Reference> dropout_add_layernorm_reference(const HostArrays& in, const RowSizes& s,
                                                       ThreadPool& pool) {
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  const auto seed = static_cast<std::uint64_t>(in[4][0]);
  for_rows(pool, s.rows, [&](Index row) {
    HostArray t(static_cast<std::size_t>(s.columns));
    for (Index j = 0; j < s.columns; ++j) {
      const auto at = static_cast<std::size_t>(row * s.columns + j);
      const std::uint32_t word = philox4x32(seed, at / 4)[at % 4];
      t[static_cast<std::size_t>(j)] = in[1][at] + (word >= threshold(s.p) ? in[0][at] / (1 - s.p) : 0.0);
    }
    layer_norm_row(t, in[2], in[3], row_of(y.values, row, s.columns), row_of(y.magnitude, row, s.columns));
  });
  return {y};
}

Result<PairInstance> make_dropout_add_layernorm(const Knobs& knobs, LabDevice& device) {
  const RowSizes s{knobs.integer("rows"), knobs.integer("columns"), knobs.real("p")};
  if (!(s.p >= 0 && s.p < 1)) throw Error("--set dropout_add_layernorm.p: a probability below 1");
  const DType dtype = knobs.dtype("dtype");
  const Shape shape{s.rows, s.columns};
  TensorWorkload w{
      .target = "dropout_add_layernorm", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", shape, dtype), normal_input("r", shape, dtype),
              shared(normal_input("w", Shape{s.columns}, dtype, {.mean = 1, .deviation = 0.1})),
              shared(normal_input("b", Shape{s.columns}, dtype, {.deviation = 0.1})),
              integer_input("seed", Shape{}, Index{1} << 31)};
  w.outputs = {{"y",
                dtype,
                shape,
                {.storage = dtype, .reduction = s.columns, .operations = 14, .storage_roundings = 3}}};
  w.cost = cost_of(w.inputs, w.outputs, 10.0 * static_cast<double>(shape.size()));
  w.cost.vector[DType::i32] = 25.0 * static_cast<double>(shape.size());  // Philox: a quarter of 100 a word
  w.composites = true;
  w.function = [p = s.p](const std::vector<Tensor>& in) {
    return std::vector{layer_norm(in[1] + dropout(in[0], in[4], p), in[2], in[3])};
  };
  w.tile = [=](const LabDevice&) { return dropout_add_layernorm_kernel(s, dtype); };
  w.no_peers =
      "PyTorch drops by random numbers of its own: its output has no reference to be checked against";
  w.reference = [s](const HostArrays& in, ThreadPool& pool) {
    return dropout_add_layernorm_reference(in, s, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair dropout_add_layernorm_pair() {
  return {
      .name = "dropout_add_layernorm",
      .doc = "layer_norm(r + dropout(x, p)) * w + b",
      .knobs =
          {{.name = "rows", .values = {Index{8192}}, .doc = "rows of x"},
           {.name = "columns",
            .values = {Index{2048}},
            .doc = "elements of a row",
            .cuda_values = {Index{4096}}},
           {.name = "p", .values = {0.1}, .doc = "probability of dropping an element", .least = 0, .most = 1},
           dtype_knob()},
      .make = make_dropout_add_layernorm,
      .tiny = {{"rows=5", "columns=131", "p=0.1,0.5"}},
      .suites = {{"quick", {"rows=4096"}}}};
}

}  // namespace tilewright::lab
