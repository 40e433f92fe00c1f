// transpose of a matrix: as much traffic as a copy, but rows become columns on the way.
#include <tilewright/tile/builder.h>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

TileLaunch transpose_kernel(Index rows, Index columns, DType dtype, DeviceKind kind) {
  tile::Builder k("transpose");
  const auto x = k.view("x", dtype, {rows, columns}), y = k.view("y", dtype, {columns, rows});
  // A square block: 64 f32 are four cache lines each way; on a GPU 32 keep a block in shared memory.
  const Index block = k.constant("BLOCK", kind == DeviceKind::cuda ? 32 : 64);
  const auto r = k.program_id(0) * block, c = k.program_id(1) * block;
  const auto t = k.load(x, {r, c}, {.shape = {block, block}, .fill = 0.0});
  k.store(y, {c, r}, k.transpose(t), {.bounded = true});
  return launch_of(k.finish({{{rows, block}}, {{columns, block}}}));
}

std::vector<Reference> transpose_reference(const HostArrays& in, Index rows, Index columns,
                                           ThreadPool& pool) {
  Reference y{HostArray(in[0].size())};
  for_rows(pool, columns, [&](Index c) {
    const auto to = row_of(y.values, c, rows);
    for (Index r = 0; r < rows; ++r)
      to[static_cast<std::size_t>(r)] = in[0][static_cast<std::size_t>(r * columns + c)];
  });
  return {y};
}

Result<PairInstance> make_transpose(const Knobs& knobs, LabDevice& device) {
  const Shape& shape = knobs.shape("shape");
  const DType dtype = knobs.dtype("dtype");
  if (shape.rank() != 2) throw Error("--set transpose.shape: a matrix, for example 4096x4096");
  const Index rows = shape[0], columns = shape[1];
  TensorWorkload w{.target = "transpose", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", shape, dtype)};
  w.outputs = {{"y", dtype, Shape{columns, rows}, {.storage = dtype, .kind = ToleranceRule::Kind::exact}}};
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.unit = "GB/s";
  w.function = [](const std::vector<Tensor>& in) { return std::vector{transpose(in[0], {1, 0})}; };
  w.tile = [=](const LabDevice& d) { return transpose_kernel(rows, columns, dtype, d.kind); };
  w.reference = [=](const HostArrays& in, ThreadPool& pool) {
    return transpose_reference(in, rows, columns, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair transpose_pair() {
  return {
      .name = "transpose",
      .doc = "y = x with rows and columns exchanged, in new memory",
      .knobs = {{.name = "shape",
                 .values = {Shape{4096, 4096}},
                 .doc = "rows x columns",
                 .cuda_values = {Shape{16384, 16384}}},
                {.name = "dtype", .values = {DType::f32}, .doc = "element type", .choices = plain_floats()}},
      .make = make_transpose,
      .tiny = {{"shape=37x101"}},
      .suites = {{"quick"}}};
}

}  // namespace tilewright::lab
