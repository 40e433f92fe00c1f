// copy: y = x. The ceiling that memory-bound work is held against.
#include <tilewright/tile/builder.h>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

TileLaunch copy_kernel(Index n, DType dtype, DeviceKind kind) {
  tile::Builder k("copy");
  const auto x = k.view("x", dtype, {n}), y = k.view("y", dtype, {n});
  const Index block = k.constant("BLOCK", kind == DeviceKind::cuda ? 4096 : 16384);
  const auto start = k.program_id(0) * block;
  k.store(y, {start}, k.load(x, {start}, {.shape = {block}, .fill = 0.0}), {.bounded = true});
  return launch_of(k.finish({{{n, block}}}));
}

Result<PairInstance> make_copy(const Knobs& knobs, LabDevice& device) {
  const Index n = knobs.integer("n");
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "copy", .shape = shape_text(Shape{n}), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", Shape{n}, dtype)};
  w.outputs = {{"y", dtype, Shape{n}, {.storage = dtype, .kind = ToleranceRule::Kind::exact}}};
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.unit = "GB/s";
  // The tensor library has no copy, for tensors are values; times one makes new memory of the same elements.
  w.function = [](const std::vector<Tensor>& in) { return std::vector{in[0] * 1.0}; };
  w.tile = [n, dtype](const LabDevice& d) { return copy_kernel(n, dtype, d.kind); };
  w.reference = [](const HostArrays& in, ThreadPool&) { return std::vector<Reference>{{in[0]}}; };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair copy_pair() {
  return {
      .name = "copy",
      .doc = "y = x",
      .knobs = {{.name = "n", .values = {Index{1} << 24}, .doc = "elements", .cuda_values = {Index{1} << 28}},
                {.name = "dtype", .values = {DType::f32}, .doc = "element type", .choices = plain_floats()}},
      .make = make_copy,
      .tiny = {{"n=1000,40000"}},
      .suites = {{"quick"}}};
}

}  // namespace tilewright::lab
