// sum of all elements to one number: one read and no write, across all programs of the grid.
#include <tilewright/tile/builder.h>

#include <cmath>
#include <numeric>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

// Partial sums by program, then one program over them.
TileLaunch sum_kernels(Index n, const LabDevice& device) {
  const Index block = device.kind == DeviceKind::cuda ? 16384 : 65536;
  const Index programs = ceil_div(n, block);
  tile::Builder k("sum_parts");
  const auto x = k.view("x", DType::f32, {n}), parts = k.view("parts", DType::f32, {programs});
  const auto program = k.program_id(0);
  k.constant("BLOCK", block);
  const auto t = k.load(x, {program * block}, {.shape = {block}, .fill = 0.0});
  k.store(parts, {program}, k.reduce(tile::Monoid::sum, t, 0));
  auto first = std::make_shared<TileFunction>(k.finish({{{n, block}}}));

  tile::Builder m("sum_of_parts");
  const auto all = m.view("parts", DType::f32, {programs}), y = m.view("y", DType::f32, {1});
  m.store(y, {0}, m.reduce(tile::Monoid::sum, m.load(all, {0}, {.shape = {programs}}), 0));
  auto second = std::make_shared<TileFunction>(m.finish({{{1, 1}}}));
  return [first, second, room = device.context->empty(Shape{programs})](const std::vector<Tensor>& out,
                                                                        const std::vector<Tensor>& in) {
    (*first)({in[0], into(room)});
    (*second)({room, into(out[0])});
  };
}

std::vector<Reference> sum_reference(const HostArrays& in, ThreadPool&) {
  double sum = 0, magnitude = 0;
  for (double v : in[0]) {
    sum += v;
    magnitude += std::fabs(v);
  }
  return {{{sum}, {magnitude}}};
}

Result<PairInstance> make_sum(const Knobs& knobs, LabDevice& device) {
  const Index n = knobs.integer("n");
  TensorWorkload w{.target = "sum", .shape = shape_text(Shape{n}), .dtype = "f32"};
  // Around 1: sums that cancel to nothing would accept nearly anything.
  w.inputs = {normal_input("x", Shape{n}, DType::f32, {.mean = 1})};
  w.outputs = {{"y", DType::f32, Shape{}, {.storage = DType::f32, .reduction = n}}};
  w.cost = cost_of(w.inputs, w.outputs, static_cast<double>(n));
  w.function = [](const std::vector<Tensor>& in) { return std::vector{sum(in[0])}; };
  w.tile = [n](const LabDevice& d) { return sum_kernels(n, d); };
  w.reference = sum_reference;
  return make_instance(std::move(w), device);
}

}  // namespace

Pair sum_pair() {
  return {.name = "sum",
          .doc = "sum of all elements",
          .knobs =
              {{.name = "n", .values = {Index{1} << 25}, .doc = "elements", .cuda_values = {Index{1} << 28}}},
          .make = make_sum,
          .tiny = {{"n=1000,70001"}},
          .suites = {{"quick"}}};
}

}  // namespace tilewright::lab
