// optimizer_step: AdamW's step of n parameters: from masters, gradient and both moments to the next masters
// and moments. Arithmetic in f32, masters f32, moments and gradient as asked for. Bound by memory: with
// moments of f32 a parameter is 28 bytes read and written.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

// GPT-2's, at its hundredth step: 1 - beta^100.
constexpr double kRate = 6e-4, kBeta1 = 0.9, kBeta2 = 0.95, kEpsilon = 1e-8, kDecay = 0.1;
const double kStarted1 = 1 - std::pow(kBeta1, 100), kStarted2 = 1 - std::pow(kBeta2, 100);

std::vector<Tensor> adamw_step(const std::vector<Tensor>& in) {
  const auto wide = [](const Tensor& t) { return cast(t, DType::f32); };
  const Tensor g = wide(in[1]), m = wide(in[2]) * kBeta1 + g * (1 - kBeta1),
               v = wide(in[3]) * kBeta2 + g * g * (1 - kBeta2);
  const Tensor along = m / (sqrt(v) * (1 / std::sqrt(kStarted2)) + kEpsilon);
  return {in[0] * (1 - kRate * kDecay) - along * (kRate / kStarted1), cast(m, in[2].dtype()),
          cast(v, in[3].dtype())};
}

std::vector<Reference> adamw_reference(const HostArrays& in, ThreadPool& pool) {
  const std::size_t n = in[0].size();
  std::vector<Reference> out(3, {HostArray(n), HostArray(n)});
  constexpr Index kBlock = 1024;
  for_rows(pool, ceil_div(static_cast<Index>(n), kBlock), [&](Index block) {
    const auto begin = static_cast<std::size_t>(block * kBlock), end = std::min(n, begin + kBlock);
    for (std::size_t i = begin; i < end; ++i) {
      const double p = in[0][i], g = in[1][i];
      const double m = in[2][i] * kBeta1 + g * (1 - kBeta1), v = in[3][i] * kBeta2 + g * g * (1 - kBeta2);
      const double of_m = std::fabs(in[2][i]) * kBeta1 + std::fabs(g) * (1 - kBeta1);
      const double rate = kRate / kStarted1 / (std::sqrt(v / kStarted2) + kEpsilon);
      out[0].values[i] = p * (1 - kRate * kDecay) - rate * m;
      out[0].magnitude[i] = std::fabs(p) + rate * of_m;
      out[1].values[i] = m, out[1].magnitude[i] = of_m;
      out[2].values[i] = v, out[2].magnitude[i] = v;
    }
  });
  return out;
}

Result<PairInstance> make_optimizer_step(const Knobs& knobs, LabDevice& device) {
  const Shape shape{knobs.integer("n")};
  const DType moments = knobs.dtype("moments"), gradient = knobs.dtype("gradient");
  TensorWorkload w{.target = "optimizer_step",
                   .shape = fmt::format("{} moments {}", shape_text(shape), name(moments)),
                   .dtype = std::string(name(gradient))};
  w.inputs = {normal_input("p", shape, DType::f32, {.deviation = 0.02}), normal_input("g", shape, gradient),
              normal_input("m", shape, moments),
              normal_input("v", shape, moments, {.mean = 1, .deviation = 0.1})};
  w.outputs = {{"p", DType::f32, shape, {.storage = DType::f32, .operations = 16}},
               {"m", moments, shape, {.storage = moments, .operations = 3}},
               {"v", moments, shape, {.storage = moments, .operations = 4}}};
  w.cost = cost_of(w.inputs, w.outputs, 14.0 * static_cast<double>(shape.size()));
  w.function = adamw_step;
  w.reference = adamw_reference;
  return make_instance(std::move(w), device);
}

}  // namespace

Pair optimizer_step_pair() {
  const std::vector<KnobValue> types = {DType::f32, DType::bf16};
  return {.name = "optimizer_step",
          .doc = "AdamW: p, m, v of p, g, m, v",
          .knobs =
              {{.name = "n",
                .values = {Index{1} << 22},
                .doc = "parameters",
                .cuda_values = {Index{124'439'808}}},  // GPT-2's
               {.name = "moments", .values = {DType::f32}, .doc = "type of both moments", .choices = types},
               {.name = "gradient", .values = {DType::f32}, .doc = "type of the gradient", .choices = types}},
          .make = make_optimizer_step,
          .tiny = {{"n=1,1000,40000", "moments=f32,bf16", "gradient=f32,bf16"}},
          .suites = {{"quick", {"n=1048576"}}}};
}

}  // namespace tilewright::lab
