// loss_scaling: a training step with dynamic loss scaling, as f16 needs it, beside the same step without: the
// loss times a scale, the gradient divided by it, a look at every element for infinities and NaN, a choice
// between the next state and the old one, and the next scale.
#include <tilewright/nn/loss_scale.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <cmath>

#include "pairs/mlp_stack.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

using List = std::vector<Tensor>;
using State = nn::OptimizerState<List>;

// AdamW behind its 99th step.
constexpr struct {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1, steps = 99;
} kAdam;
constexpr double kScale = 65536;

// The inputs in their order: x, target, weights, both moments of each weight, steps, scale, good steps.
struct StepInputs {
  StepInputs(const List& in, const MlpSizes& s)
      : x(in[0]), target(in[1]), steps(in[in.size() - 3]), scale{in[in.size() - 2], in.back()} {
    const auto first = in.begin() + 2;
    const std::ptrdiff_t count = 2 * s.layers;
    weights.assign(first, first + count);
    state.steps = steps;
    for (const int slot : {1, 2}) state.slots.emplace_back(first + slot * count, first + (slot + 1) * count);
  }
  Tensor x, target, steps;
  nn::LossScale scale;
  List weights;
  State state;
};

List results(const Tensor& loss, const List& weights, const State& state, const nn::LossScale& scale) {
  List out{loss};
  for (const List* list : {&weights, &state.slots[0], &state.slots[1]})
    out.insert(out.end(), list->begin(), list->end());
  out.push_back(scale.scale), out.push_back(scale.good_steps);
  return out;
}

nn::Optimizer optimizer() {
  return nn::adamw(
      {.beta1 = kAdam.beta1, .beta2 = kAdam.beta2, .epsilon = kAdam.epsilon, .weight_decay = kAdam.decay});
}

List scaled_step(const List& all, const MlpSizes& s) {
  const StepInputs in(all, s);
  const auto loss = [&](const List& w) { return mlp_loss(in.x, in.target, w) * in.scale.scale; };
  const auto [value, gradient] = value_and_grad(loss)(in.weights);
  const auto [slopes, finite] = nn::unscaled(gradient, in.scale);
  const auto next = optimizer().update(in.weights, slopes, in.state, full_like(in.steps, kAdam.rate));
  const auto [weights, state] = nn::choose(finite, next, std::pair{in.weights, in.state});
  return results(value / in.scale.scale, weights, state, nn::next_loss_scale(in.scale, finite));
}

// The scale goes through as it is, one step on.
List plain_step(const List& all, const MlpSizes& s) {
  const StepInputs in(all, s);
  const auto loss = [&](const List& w) { return mlp_loss(in.x, in.target, w); };
  const auto [value, gradient] = value_and_grad(loss)(in.weights);
  const auto [weights, state] =
      optimizer().update(in.weights, gradient, in.state, full_like(in.steps, kAdam.rate));
  return results(value, weights, state, {in.scale.scale * 1.f, in.scale.good_steps + 1.f});
}

HostArrays host_step(const HostArrays& in, const MlpSizes& s, DType factors, RandomRounding& rounding,
                     ThreadPool& pool) {
  // The step without a scale loses most: what is below f16's least number. The bound is both steps'.
  const HostArrays gradients = host_mlp_gradient(in, s, factor_rounding(factors), rounding, pool);
  const auto count = static_cast<std::size_t>(2 * s.layers);
  HostArrays out(1 + 3 * count);
  out[0] = gradients[0];
  const double started1 = 1 - std::pow(kAdam.beta1, kAdam.steps + 1),
               started2 = 1 - std::pow(kAdam.beta2, kAdam.steps + 1);
  for (std::size_t w = 0; w < count; ++w) {
    HostArray p = in[2 + w], m = in[2 + count + w], v = in[2 + 2 * count + w];
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = gradients[1 + w][i];
      m[i] = kAdam.beta1 * m[i] + (1 - kAdam.beta1) * g;
      v[i] = kAdam.beta2 * v[i] + (1 - kAdam.beta2) * g * g;
      p[i] = p[i] * (1 - kAdam.rate * kAdam.decay) -
             kAdam.rate / started1 * m[i] / (std::sqrt(v[i] / started2) + kAdam.epsilon);
    }
    for (HostArray* array : {&p, &m, &v}) rounding.move(*array, roundoff(DType::f32));
    out[1 + w] = std::move(p), out[1 + count + w] = std::move(m), out[1 + 2 * count + w] = std::move(v);
  }
  out.push_back({kScale}), out.push_back({1});
  return out;
}

InputSpec number(const std::string& name, double value) {
  return {name, DType::f32, Shape{}, [value](Context& context) { return context.scalar(value); }, false};
}

Result<PairInstance> make_loss_scaling(const Knobs& knobs, LabDevice& device) {
  const MlpSizes s = mlp_sizes(knobs);
  const std::string& precision = knobs.text("precision");
  TensorWorkload w{.target = "loss_scaling", .shape = s.text(), .dtype = precision};
  w.inputs = mlp_inputs(s);
  w.outputs = {{"loss", DType::f32, Shape{}, mlp_rule(s)}};
  for (const char* prefix : {"", "m ", "v "}) {
    const std::vector<OutputSpec> own = like_weights(s, prefix, mlp_rule(s));
    w.outputs.insert(w.outputs.end(), own.begin(), own.end());
    if (*prefix == '\0') continue;
    const bool squares = *prefix == 'v';
    // About as large as the gradient: a sum over rows of 2 (y - target) gelu(z) / (rows · width).
    const double slope = 2 / (std::sqrt(static_cast<double>(s.rows)) * static_cast<double>(s.width));
    const Normal values{.mean = squares ? slope * slope : 0,
                        .deviation = squares ? 0.1 * slope * slope : slope};
    for (const OutputSpec& o : own)
      w.inputs.push_back(shared(normal_input(o.name, o.shape, DType::f32, values)));
  }
  w.inputs.push_back(number("steps", kAdam.steps));
  w.inputs.push_back(number("scale", kScale)), w.inputs.push_back(number("good steps", 0));
  const ToleranceRule exact{.kind = ToleranceRule::Kind::exact};
  w.outputs.push_back({"scale", DType::f32, Shape{}, exact});
  w.outputs.push_back({"good steps", DType::f32, Shape{}, exact});
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.cost.matrix[factors_of(precision)] = s.flops();
  w.options = {.precision = parse_precision(precision).value()};
  w.op_by_op = false;  // a gradient
  w.before = {{.name = "unscaled",
               .function = [s](const List& in) { return plain_step(in, s); },
               .options = w.options}};
  w.function = [s](const List& in) { return scaled_step(in, s); };
  w.peer_parameters = {{"precision", precision}};
  w.reference = [s, precision, outputs = w.outputs](const HostArrays& in, ThreadPool& pool) {
    const auto step = [&](RandomRounding& rounding) {
      return host_step(in, s, factors_of(precision), rounding, pool);
    };
    return references(spread_of(step, kMlpRuns), outputs);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair loss_scaling_pair() {
  std::vector<Knob> knobs = mlp_knobs({.rows = 256, .width = 256, .hidden = 1024, .layers = 2},
                                      {.rows = 8192, .width = 1024, .hidden = 4096, .layers = 2});
  Knob precision = mlp_precision_knob({"f16", "bf16", "f32"});
  precision.values = {std::string("f16"), std::string("bf16")};
  precision.cuda_values = precision.values;
  knobs.push_back(std::move(precision));
  return {.name = "loss_scaling",
          .doc = "a training step with dynamic loss scaling beside one without",
          .knobs = std::move(knobs),
          .make = make_loss_scaling,
          .tiny = {{"rows=36", "width=20", "hidden=50", "layers=2", "precision=f16,bf16,f32"}},
          .suites = {{"quick", {"rows=256", "width=256", "hidden=1024", "layers=1", "precision=f16"}}}};
}

}  // namespace tilewright::lab
