// add_rmsnorm: rms_norm(x + r) · w of each row, as between the blocks of a Llama.
#include <tilewright/tile/builder.h>

#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

constexpr double kEpsilon = 1e-5;

TileLaunch add_rmsnorm_kernel(Index rows, Index columns, DType dtype) {
  tile::Builder k("add_rmsnorm");
  const auto x = k.view("x", dtype, {rows, columns}), r = k.view("r", dtype, {rows, columns});
  const auto w = k.view("w", dtype, {columns}), y = k.view("y", dtype, {rows, columns});
  const auto row = k.program_id(0);
  const auto s = load_row(k, x, row, columns) + load_row(k, r, row, columns);
  const auto mean = k.reduce(tile::Monoid::sum, s * s, 0) * (1.0 / static_cast<double>(columns));
  const auto scaled = s * tile::rsqrt(mean + kEpsilon) * load_vector(k, w, columns);
  k.store(y, {row, 0}, narrow(k, scaled, dtype));
  return launch_of(k.finish({{{rows, 1}}}));
}

std::vector<Reference> add_rmsnorm_reference(const HostArrays& in, Index rows, Index columns,
                                             ThreadPool& pool) {
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  for_rows(pool, rows, [&](Index row) {
    const auto x = row_of(in[0], row, columns), r = row_of(in[1], row, columns);
    const auto values = row_of(y.values, row, columns), magnitude = row_of(y.magnitude, row, columns);
    double squares = 0;
    for (std::size_t j = 0; j < x.size(); ++j) squares += (x[j] + r[j]) * (x[j] + r[j]);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + kEpsilon);
    for (std::size_t j = 0; j < x.size(); ++j) {
      values[j] = (x[j] + r[j]) * scale * in[2][j];
      magnitude[j] = (std::fabs(x[j]) + std::fabs(r[j])) * scale * std::fabs(in[2][j]);
    }
  });
  return {y};
}

Result<PairInstance> make_add_rmsnorm(const Knobs& knobs, LabDevice& device) {
  const Index rows = knobs.integer("rows"), columns = knobs.integer("columns");
  const DType dtype = knobs.dtype("dtype");
  const Shape shape{rows, columns};
  TensorWorkload w{.target = "add_rmsnorm", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", shape, dtype), normal_input("r", shape, dtype),
              shared(normal_input("w", Shape{columns}, dtype, {.mean = 1, .deviation = 0.1}))};
  w.outputs = {{"y",
                dtype,
                shape,
                {.storage = dtype, .reduction = columns, .operations = 10, .storage_roundings = 2}}};
  w.cost = cost_of(w.inputs, w.outputs, 5.0 * static_cast<double>(shape.size()));
  w.composites = true;
  w.function = [](const std::vector<Tensor>& in) { return std::vector{rms_norm(in[0] + in[1], in[2])}; };
  w.tile = [=](const LabDevice&) { return add_rmsnorm_kernel(rows, columns, dtype); };
  w.reference = [=](const HostArrays& in, ThreadPool& pool) {
    return add_rmsnorm_reference(in, rows, columns, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair add_rmsnorm_pair() {
  return {.name = "add_rmsnorm",
          .doc = "rms_norm(x + r) * w",
          .knobs = {{.name = "rows", .values = {Index{8192}}, .doc = "rows of x"},
                    {.name = "columns", .values = {Index{4096}}, .doc = "elements of a row"},
                    dtype_knob()},
          .make = make_add_rmsnorm,
          .tiny = {{"rows=5", "columns=131", "dtype=f32,bf16"}},
          .suites = {{"quick", {"rows=4096"}}}};
}

}  // namespace tilewright::lab
