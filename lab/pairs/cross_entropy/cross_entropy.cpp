// cross_entropy: the mean loss over rows of logits and its gradient. Eager execution passes over the logits
// many times; once is enough to read them and once to write the gradient.
#include <tilewright/tensor/gradient.h>
#include <tilewright/tile/builder.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/tile_help.h"

namespace tilewright::lab {

namespace {

struct LogitSizes {
  Index rows, classes;
};

std::vector<Tensor> loss_and_gradient(const std::vector<Tensor>& in) {
  const auto loss = [](const Tensor& logits, const Tensor& labels) { return cross_entropy(logits, labels); };
  return tensors_of(value_and_grad(loss)(in[0], in[1]));
}

// The same by separate calls: the derivative of the mean of log-sum-exp minus the label's logit.
std::vector<Tensor> loss_and_gradient_by_calls(const std::vector<Tensor>& in) {
  const Tensor logits = cast(in[0], DType::f32), &labels = in[1];
  const Tensor logp = log_softmax(logits);
  const Tensor loss = -mean(take_along(logp, unsqueeze(labels, 1), 1));
  const auto rows = static_cast<double>(logits.shape()[0]);
  const Tensor gradient = (exp(logp) - one_hot(labels, logits.shape()[1])) * (1 / rows);
  return {loss, cast(gradient, in[0].dtype())};
}

// One program a row: loss and gradient of the row; then one program for the mean.
TileLaunch cross_entropy_kernels(const LogitSizes& s, DType dtype, Context& context) {
  tile::Builder k("cross_entropy_rows");
  const auto x = k.view("logits", dtype, {s.rows, s.classes}),
             g = k.view("gradient", dtype, {s.rows, s.classes});
  const auto labels = k.view("labels", DType::i64, {s.rows}), losses = k.view("losses", DType::f32, {s.rows});
  const auto row = k.program_id(0);
  const auto label = k.load(labels, {row});
  const auto t = widen(k, k.load(x, {row, 0}, {.shape = {s.classes}}));
  const auto largest = k.reduce(tile::Monoid::max, t, 0);
  const auto e = tile::exp(t - largest);
  const auto sum = k.reduce(tile::Monoid::sum, e, 0);
  k.store(losses, {row}, tile::log(sum) + largest - widen(k, k.load(x, {row, label})));
  const double share = 1.0 / static_cast<double>(s.rows);
  const auto p = e * (share / sum);
  k.store(g, {row, 0}, narrow(k, where(k.arange(s.classes) == label, p - share, p), dtype));
  auto rows = std::make_shared<TileFunction>(k.finish({{{s.rows, 1}}}));

  tile::Builder m("cross_entropy_mean");
  const auto all = m.view("losses", DType::f32, {s.rows}), loss = m.view("loss", DType::f32, {1});
  m.store(loss, {0}, m.reduce(tile::Monoid::sum, m.load(all, {0}, {.shape = {s.rows}}), 0) * share);
  auto mean = std::make_shared<TileFunction>(m.finish({{{1, 1}}}));
  return [rows, mean, room = context.empty(Shape{s.rows})](const std::vector<Tensor>& out,
                                                           const std::vector<Tensor>& in) {
    (*rows)({in[0], into(out[1]), in[1], into(room)});
    (*mean)({room, into(out[0])});
  };
}

std::vector<Reference> cross_entropy_reference(const HostArrays& in, const LogitSizes& s, ThreadPool& pool) {
  Reference gradient{HostArray(in[0].size()), HostArray(in[0].size())};
  HostArray losses(static_cast<std::size_t>(s.rows)), sizes(static_cast<std::size_t>(s.rows));
  const auto rows = static_cast<double>(s.rows);
  for_rows(pool, s.rows, [&](Index r) {
    const auto x = row_of(in[0], r, s.classes);
    const auto g = row_of(gradient.values, r, s.classes),
               magnitude = row_of(gradient.magnitude, r, s.classes);
    const auto at = static_cast<std::size_t>(r), label = static_cast<std::size_t>(in[1][at]);
    const double largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += g[j] = std::exp(x[j] - largest);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double p = g[j] / sum, own = j == label ? 1 : 0;
      g[j] = (p - own) / rows;
      magnitude[j] = (p + own) / rows;
    }
    const double lse = largest + std::log(sum);
    losses[at] = lse - x[label];
    sizes[at] = std::fabs(largest) + std::fabs(std::log(sum)) + std::fabs(x[label]);
  });
  Reference loss{{0}, {0}};
  for (std::size_t r = 0; r < losses.size(); ++r) {
    loss.values[0] += losses[r] / rows;
    loss.magnitude[0] += sizes[r] / rows;
  }
  return {loss, gradient};
}

Result<PairInstance> make_cross_entropy(const Knobs& knobs, LabDevice& device) {
  const LogitSizes s{knobs.integer("rows"), knobs.integer("classes")};
  const Index labels = std::min(s.classes, knobs.integer("labels"));
  const DType dtype = knobs.dtype("dtype");
  const Shape shape{s.rows, s.classes};
  TensorWorkload w{.target = "cross_entropy", .shape = shape_text(shape), .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("logits", shape, dtype), integer_input("labels", Shape{s.rows}, labels)};
  // The rounding of x − max counts |x − max| ≤ 16 times, as in softmax.
  w.outputs = {{"loss",
                DType::f32,
                Shape{},
                {.storage = DType::f32, .reduction = s.classes + s.rows, .operations = 28}},
               {"gradient", dtype, shape, {.storage = dtype, .reduction = s.classes, .operations = 28}}};
  w.cost = cost_of(w.inputs, w.outputs, 18.0 * static_cast<double>(shape.size()));
  w.function = loss_and_gradient;
  w.eager = loss_and_gradient_by_calls;
  w.tile = [=](const LabDevice& d) { return cross_entropy_kernels(s, dtype, *d.context); };
  w.reference = [s](const HostArrays& in, ThreadPool& pool) { return cross_entropy_reference(in, s, pool); };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair cross_entropy_pair() {
  return {
      .name = "cross_entropy",
      .doc = "mean cross-entropy of logits and labels, with its gradient",
      .knobs =
          {{.name = "rows", .values = {Index{2048}}, .doc = "rows of logits", .cuda_values = {Index{8192}}},
           {.name = "classes", .values = {Index{50304}}, .doc = "elements of a row"},
           {.name = "labels", .values = {Index{50257}}, .doc = "labels are below this, and below classes"},
           {.name = "dtype",
            .values = {DType::f32},
            .doc = "type of the logits",
            .cuda_values = {DType::bf16},
            .choices = {DType::f32, DType::f16, DType::bf16}}},
      .make = make_cross_entropy,
      .tiny = {{"rows=6", "classes=301", "dtype=f32,bf16"}},
      .suites = {{"quick", {"rows=512"}}}};
}

}  // namespace tilewright::lab
