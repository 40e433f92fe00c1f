// sincos10: x = sin(x) + cos(x), ten times. Arithmetic without traffic once it is fused; eager execution
// writes and reads thirty arrays.
#include <tilewright/tile/builder.h>

#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

constexpr int kTimes = 10;

Tensor sincos10(Tensor x) {
  for (int i = 0; i < kTimes; ++i) x = sin(x) + cos(x);
  return x;
}

TileLaunch sincos10_kernel(Index n, DeviceKind kind) {
  tile::Builder k("sincos10");
  const auto x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  const Index block = k.constant("BLOCK", kind == DeviceKind::cuda ? 1024 : 8192);
  const auto start = k.program_id(0) * block;
  auto t = k.load(x, {start}, {.shape = {block}, .fill = 0.0});
  for (int i = 0; i < kTimes; ++i) t = tile::sin(t) + tile::cos(t);
  k.store(y, {start}, t, {.bounded = true});
  return launch_of(k.finish({{{n, block}}}));
}

// The magnitude carries what each step's rounding becomes in the later ones: e ← |cos x − sin x| e + |sin x|
// + |cos x|.
std::vector<Reference> sincos10_reference(const HostArrays& in, ThreadPool& pool) {
  Reference y{HostArray(in[0].size()), HostArray(in[0].size())};
  for_rows(pool, static_cast<Index>(in[0].size()), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    double x = in[0][at], magnitude = 0;
    for (int step = 0; step < kTimes; ++step) {
      const double s = std::sin(x), c = std::cos(x);
      magnitude = std::fabs(c - s) * magnitude + std::fabs(s) + std::fabs(c);
      x = s + c;
    }
    y.values[at] = x;
    y.magnitude[at] = magnitude;
  });
  return {y};
}

Result<PairInstance> make_sincos10(const Knobs& knobs, LabDevice& device) {
  const Shape& shape = knobs.shape("shape");
  const Index n = shape.size();
  TensorWorkload w{.target = "sincos10", .shape = shape_text(shape), .dtype = "f32"};
  w.inputs = {normal_input("x", shape, DType::f32)};
  // The operations of one step: the magnitude adds the steps up.
  w.outputs = {{"y", DType::f32, shape, {.storage = DType::f32, .operations = 9}}};
  // sin 16, cos 16, add: as the cost of tile kernels counts them.
  w.cost = cost_of(w.inputs, w.outputs, 33.0 * kTimes * static_cast<double>(n));
  w.function = [](const std::vector<Tensor>& in) { return std::vector{sincos10(in[0])}; };
  w.tile = [n](const LabDevice& d) { return sincos10_kernel(n, d.kind); };
  w.reference = sincos10_reference;
  return make_instance(std::move(w), device);
}

}  // namespace

Pair sincos10_pair() {
  return {.name = "sincos10",
          .doc = "x = sin(x) + cos(x), ten times",
          .knobs = {{.name = "shape", .values = {Shape{1024, 1024}}, .doc = "of x"}},
          .make = make_sincos10,
          .tiny = {{"shape=7x143"}},
          .suites = {{"quick"}}};
}

}  // namespace tilewright::lab
