// softmax of each row. One read, one write where a row fits on chip; a long row is what makes it hard.
#include <tilewright/tile/builder.h>

#include <algorithm>
#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

// One program a row, the whole row one tile.
TileLaunch softmax_kernel(Index rows, Index columns, DType dtype) {
  tile::Builder k("softmax");
  const auto x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {rows, columns});
  const auto row = k.program_id(0);
  const auto t = load_row(k, x, row, columns);
  const auto e = tile::exp(t - k.reduce(tile::Monoid::max, t, 0));
  k.store(y, {row, 0}, narrow(k, e * (1.0 / k.reduce(tile::Monoid::sum, e, 0)), dtype));
  return launch_of(k.finish({{{rows, 1}}}));
}

std::vector<Reference> softmax_reference(const HostArrays& in, Index rows, Index columns, ThreadPool& pool) {
  Reference y{HostArray(in[0].size())};
  for_rows(pool, rows, [&](Index r) {
    const auto x = row_of(in[0], r, columns);
    const auto to = row_of(y.values, r, columns);
    const double largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += to[j] = std::exp(x[j] - largest);
    for (double& v : to) v /= sum;
  });
  return {y};
}

Result<PairInstance> make_softmax(const Knobs& knobs, LabDevice& device) {
  const Index columns = knobs.integer("columns");
  const Index rows = std::max<Index>(1, knobs.integer("elements") / columns);
  const DType dtype = knobs.dtype("dtype");
  const Shape shape{rows, columns};
  TensorWorkload w{.target = "softmax", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", shape, dtype)};
  // x − max is rounded before exp takes it: with |x − max| ≤ 16 that is 16 roundings of the result.
  w.outputs = {{"y", dtype, shape, {.storage = dtype, .reduction = columns, .operations = 28}}};
  w.cost = cost_of(w.inputs, w.outputs, 14.0 * static_cast<double>(rows * columns));
  w.composites = true;
  w.function = [](const std::vector<Tensor>& in) { return std::vector{softmax(in[0])}; };
  w.tile = [rows, columns, dtype](const LabDevice&) { return softmax_kernel(rows, columns, dtype); };
  w.reference = [rows, columns](const HostArrays& in, ThreadPool& pool) {
    return softmax_reference(in, rows, columns, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair softmax_pair() {
  return {.name = "softmax",
          .doc = "softmax of each row",
          .knobs = {{.name = "columns",
                     .values = {Index{1024}, Index{8192}, Index{65536}},
                     .doc = "elements of a row"},
                    {.name = "elements",
                     .values = {Index{1} << 25},
                     .doc = "elements in all; rows = elements / columns",
                     .cuda_values = {Index{1} << 26}},
                    dtype_knob()},
          .make = make_softmax,
          .tiny = {{"columns=1,37,1024", "elements=2100", "dtype=f32,bf16"}},
          .suites = {{"quick", {"elements=2^24"}}}};
}

}  // namespace tilewright::lab
