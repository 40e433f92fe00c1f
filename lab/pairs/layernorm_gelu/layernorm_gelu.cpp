// layernorm_gelu: gelu(layer_norm(x) · w + b) of each row, two memory-bound calls that fuse into one pass.
#include <tilewright/tile/builder.h>

#include <cmath>

#include "pairs/host_norm.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

TileLaunch layernorm_gelu_kernel(Index rows, Index columns, DType dtype) {
  tile::Builder k("layernorm_gelu");
  const auto x = k.view("x", dtype, {rows, columns});
  const auto w = k.view("w", dtype, {columns}), b = k.view("b", dtype, {columns});
  const auto y = k.view("y", dtype, {rows, columns});
  const auto row = k.program_id(0);
  const auto t = standardised(k, load_row(k, x, row, columns), columns);
  const auto scale = load_vector(k, w, columns), shift = load_vector(k, b, columns);
  const auto z = t * scale + shift;
  // x Φ(x) by tanh, as the logistic function of twice the argument: ½ (1 + tanh u) = σ(2u)
  const auto gelu = z * tile::sigmoid(z * (kGelu * 2) * (z * z * kGeluCubic + 1.0));
  k.store(y, {row, 0}, narrow(k, gelu, dtype));
  return launch_of(k.finish({{{rows, 1}}}));
}

std::vector<Reference> layernorm_gelu_reference(const HostArrays& in, Index rows, Index columns,
                                                ThreadPool& pool) {
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  for_rows(pool, rows, [&](Index r) {
    const auto values = row_of(y.values, r, columns), magnitude = row_of(y.magnitude, r, columns);
    layer_norm_row(row_of(in[0], r, columns), in[1], in[2], values, magnitude);
    for (double& z : values) z = gelu_tanh(z);
  });
  return {y};
}

Result<PairInstance> make_layernorm_gelu(const Knobs& knobs, LabDevice& device) {
  const Index rows = knobs.integer("rows"), columns = knobs.integer("columns");
  const DType dtype = knobs.dtype("dtype");
  const Shape shape{rows, columns};
  TensorWorkload w{.target = "layernorm_gelu", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", shape, dtype, {.mean = 0.5}),
              shared(normal_input("w", Shape{columns}, dtype, {.mean = 1, .deviation = 0.1})),
              shared(normal_input("b", Shape{columns}, dtype, {.deviation = 0.1}))};
  w.outputs = {{"y",
                dtype,
                shape,
                {.storage = dtype, .reduction = columns, .operations = 24, .storage_roundings = 2}}};
  w.cost = cost_of(w.inputs, w.outputs, 30.0 * static_cast<double>(shape.size()));
  w.composites = true;
  w.function = [](const std::vector<Tensor>& in) {
    return std::vector{gelu_tanh(layer_norm(in[0], in[1], in[2]))};
  };
  w.tile = [=](const LabDevice&) { return layernorm_gelu_kernel(rows, columns, dtype); };
  w.reference = [=](const HostArrays& in, ThreadPool& pool) {
    return layernorm_gelu_reference(in, rows, columns, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair layernorm_gelu_pair() {
  return {.name = "layernorm_gelu",
          .doc = "gelu(layer_norm(x) * w + b), gelu by tanh",
          .knobs = {{.name = "rows", .values = {Index{8192}}, .doc = "rows of x"},
                    {.name = "columns", .values = {Index{4096}}, .doc = "elements of a row"},
                    dtype_knob()},
          .make = make_layernorm_gelu,
          .tiny = {{"rows=5", "columns=131", "dtype=f32,bf16"}},
          .suites = {{"quick", {"rows=4096"}}}};
}

}  // namespace tilewright::lab
