// elu: y = x where x > 0, else exp(x) − 1. One read, one write; small sizes show what a call costs.
#include <tilewright/tile/builder.h>

#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

Tensor elu_as_written(const Tensor& x) { return where(x > 0.f, x, exp(x) - 1.f); }

TileLaunch elu_kernel(Index n, DType dtype, DeviceKind kind) {
  tile::Builder k("elu");
  const auto x = k.view("x", dtype, {n}), y = k.view("y", dtype, {n});
  // A CPU program is a task of the pool: long enough to pay for it. On a GPU one block of 256 threads takes
  // two 16-byte accesses a thread.
  const Index block = k.constant("BLOCK", kind == DeviceKind::cuda ? 2048 : 16384);
  const auto start = k.program_id(0) * block;
  const auto t = widen(k, k.load(x, {start}, {.shape = {block}, .fill = 0.0}));
  k.store(y, {start}, narrow(k, where(t > 0.f, t, tile::exp(t) - 1.f), dtype), {.bounded = true});
  return launch_of(k.finish({{{n, block}}}));
}

std::vector<Reference> elu_reference(const HostArrays& in, ThreadPool& pool) {
  const HostArray& x = in[0];
  Reference y{HostArray(x.size()), HostArray(x.size())};
  for_rows(pool, static_cast<Index>(x.size()), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    const bool positive = x[at] > 0;
    y.values[at] = positive ? x[at] : std::expm1(x[at]);
    y.magnitude[at] = positive ? x[at] : std::exp(x[at]) + 1;  // what exp(x) − 1 cancels
  });
  return {y};
}

Result<PairInstance> make_elu(const Knobs& knobs, LabDevice& device) {
  const Index n = knobs.integer("n");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "elu", .shape = shape_text(Shape{n}), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", Shape{n}, dtype)};
  w.outputs = {{"y", dtype, Shape{n}, {.storage = dtype, .operations = 5, .storage_roundings = 2}}};
  w.cost = cost_of(w.inputs, w.outputs, 13.0 * static_cast<double>(n));  // exp 10, compare, subtract, select
  w.function = [](const std::vector<Tensor>& in) { return std::vector{elu_as_written(in[0])}; };
  w.tile = [n, dtype](const LabDevice& d) { return elu_kernel(n, dtype, d.kind); };
  w.reference = elu_reference;
  return make_instance(std::move(w), device);
}

}  // namespace

Pair elu_pair() {
  return {
      .name = "elu",
      .doc = "y = where(x > 0, x, exp(x) - 1)",
      .knobs = {{.name = "n",
                 // The curve of the page; the first is what tw explain takes.
                 .values = {Index{1} << 24, Index{1} << 20, Index{1} << 16, Index{1} << 12},
                 .doc = "elements",
                 .cuda_values = {Index{1} << 12, Index{1} << 16, Index{1} << 20, Index{1} << 24,
                                 Index{1} << 28}},
                {.name = "dtype", .values = {DType::f32}, .doc = "element type", .choices = plain_floats()}},
      .make = make_elu,
      .tiny = {{"n=1,1000,40000", "dtype=f32,bf16"}},
      .suites = {{"quick"}}};
}

}  // namespace tilewright::lab
