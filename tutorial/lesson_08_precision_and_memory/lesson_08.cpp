// Lesson 8: precision and memory of a training.
//
// The numbers that a float has, what that does to gradients, and what is done about it; then where the memory
// of a step goes, and three ways to need less of it: narrower moments, values that are computed again where
// you say so (checkpoint()), and a budget that the compiler keeps (memory_budget).
//
//   lesson [device] [steps]      default: cpu 60
#include <fmt/core.h>

#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/layers.h>
#include <tilewright/nn/loss_scale.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tilewright.hpp>

#include <cmath>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace tw = tilewright;
namespace nn = tilewright::nn;
using tw::DType;
using tw::Index;
using tw::Tensor;

namespace {

// --- what a type can say: how near it comes to a third, and which numbers are 0 to it

bool show_types(tw::Context& ctx) {
  bool right = true;
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    const auto stored = [&](double number) { return ctx.scalar(number).to(type).to(DType::f32).item(); };
    const double off = std::abs(stored(1.0 / 3) - 1.0 / 3) * 3;
    fmt::print("  {:7} 1/3 is off by {:.1e}; 3e-6 is {:.1e}, 1e5 is {:.0f}\n", name(type), off, stored(3e-6),
               stored(1e5));
    right = right && off <= tw::unit_roundoff(type);
  }
  // What bf16 has in range it lacks in digits; f16 the other way round.
  return right;
}

// --- f16: a gradient below 6e-8 is 0, and nothing is learnt; scaled, it is there

// The mean of many small errors, as a loss of a model that is nearly right.
Tensor small_loss(const Tensor& weight, const Tensor& x) {
  const Tensor error = tw::cast(x * tw::cast(weight, DType::f16), DType::f32) * 1e-4F;
  return tw::mean(error * error);
}

bool scale_losses(tw::Context& ctx) {
  const Tensor weight = ctx.ones({1024}), x = ctx.ones({1024}, DType::f16);
  const auto slope = tw::compile([](const Tensor& w, const Tensor& in, const nn::LossScale& scale) {
    const auto scaled = [&](const Tensor& own) { return small_loss(own, in) * scale.scale; };
    return nn::unscaled(tw::grad(scaled)(w), scale);
  });
  const double wanted = 2e-8 / 1024;
  const auto slope_with = [&](double first) {
    const auto [gradient, finite] = slope(weight, x, nn::make_loss_scale(ctx, {.first = first}));
    return std::pair{tw::mean(gradient).item(), finite.item() != 0};
  };
  const double without = slope_with(1).first;
  const auto [with, finite] = slope_with(0x1p24);  // into f16's normal numbers, from 6e-5 on
  // A scale that is too large overflows: then the step is left out, and next_loss_scale() gives a smaller
  // one.
  const bool overflows = !slope_with(1e18).second;
  fmt::print("  a slope of {:.2e} is {:.2e} in f16, {:.2e} scaled by 2^24; scaled by 1e18 it is {}\n", wanted,
             without, with, overflows ? "no number" : "a number");
  return without == 0 && finite && overflows && std::abs(with / wanted - 1) < 0.01;
}

// --- a training in each precision, and the bytes of its state

struct Data {
  Tensor tokens, targets;  // (rows, time)
};
constexpr Index kHeads = 4;
constexpr nn::GPT2Config kModel = {
    .vocabulary = 64, .context = 64, .width = 64, .layers = 4, .heads = kHeads};

// Each token follows from the one before it.
Data make_data(tw::Context& ctx) {
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t row = 0; row < 16; ++row)
    for (std::int32_t at = 0; at < 64; ++at) {
      tokens.push_back((row * 17 + at * 5) % 64);
      targets.push_back((row * 17 + (at + 1) * 5) % 64);
    }
  return {ctx.from(tokens, {16, 64}), ctx.from(targets, {16, 64})};
}

struct Trained {
  double loss = 0;
  double bytes_per_parameter = 0;  // of parameters and optimizer, between two steps
};

// Parameters stay f32: a step of a thousandth would be rounded away in bf16. What products multiply is a copy
// in `compute`, made anew at each step, and gradients flow back through the cast.
Trained train(tw::Context& ctx, DType compute, DType moments, int steps) {
  ctx.set_seed(1);
  const Data data = make_data(ctx);
  nn::GPT2 model = nn::make_gpt2(ctx, kModel);
  double parameters = 0;
  for (const Tensor& t : tw::tensors_of(model)) parameters += static_cast<double>(t.size());
  const nn::Optimizer optimizer = nn::adamw({.beta2 = 0.95, .weight_decay = 0.1, .moments = moments});
  nn::OptimizerState<nn::GPT2> state = optimizer.init(model);
  const auto step = tw::compile(
      [&](const nn::GPT2& m, const nn::OptimizerState<nn::GPT2>& s, const Tensor& tokens,
          const Tensor& targets, const Tensor& rate) {
        const auto loss = [&](const nn::GPT2& own) {
          return nn::gpt2_loss(nn::cast_tree(own, compute), tokens, targets, kHeads);
        };
        const auto [value, slope] = tw::value_and_grad(loss)(m);
        const auto [next, next_state] = optimizer.update(m, slope, s, rate);
        return std::tuple{value, next, next_state};
      },
      {.donate = {0, 1}});
  const Tensor rate = ctx.scalar(3e-3);
  Trained out;
  for (int i = 0; i < steps; ++i) {
    Tensor loss;
    std::tie(loss, model, state) = step(model, state, data.tokens, data.targets, rate);
    out.loss = loss.item();
  }
  const auto bytes = [&] {
    ctx.synchronize();
    return static_cast<double>(ctx.memory().bytes);
  };
  const double with = bytes();
  model = {}, state = {};
  out.bytes_per_parameter = (with - bytes()) / parameters;
  return out;
}

bool train_in_each(tw::Context& ctx, int steps) {
  const Trained wide = train(ctx, DType::f32, DType::f32, steps);
  const Trained narrow = train(ctx, DType::bf16, DType::f32, steps);
  const Trained narrower = train(ctx, DType::bf16, DType::bf16, steps);
  const auto say = [](const char* what, const Trained& t) {
    fmt::print("  {:32} loss {:.3f}, {:.1f} bytes a parameter\n", what, t.loss, t.bytes_per_parameter);
  };
  say("f32", wide);
  say("products in bf16", narrow);
  say("products and moments in bf16", narrower);
  // 4 of the parameter and 4 or 2 of each moment. Between steps no activation and no gradient is there.
  return narrow.loss < 2 && std::abs(narrow.loss - wide.loss) < 0.3 &&
         std::abs(narrower.loss - wide.loss) < 0.3 && std::abs(wide.bytes_per_parameter - 12) < 0.2 &&
         std::abs(narrower.bytes_per_parameter - 8) < 0.2;
}

// --- activations: kept, made again where you say so, or as a budget wants it

struct Layer {
  Tensor up, down;
  TILEWRIGHT_FIELDS(up, down)
};
Tensor apply_layer(const Layer& layer, const Tensor& x) {
  return x + tw::matmul(tw::gelu(tw::matmul(tw::layer_norm(x, {}, {}), layer.up)), layer.down);
}

bool save_memory(tw::Context& ctx) {
  std::vector<Layer> layers;
  layers.reserve(6);
  for (int i = 0; i < 6; ++i)
    layers.push_back({.up = ctx.randn({64, 256}) * 0.1F, .down = ctx.randn({256, 64}) * 0.05F});
  const Tensor x = ctx.randn({512, 64});
  // The gradient of all layers, by a function that applies one.
  const auto slopes_by = [](const auto& apply) {
    return [apply](const std::vector<Layer>& all, const Tensor& in) {
      const auto loss = [&](const std::vector<Layer>& own) {
        Tensor y = in;
        for (const Layer& layer : own) y = apply(layer, y);
        return tw::mean(y * y);
      };
      return tw::grad(loss)(all);
    };
  };
  const auto kept = tw::compile(slopes_by(apply_layer));
  const auto again = tw::compile(slopes_by(tw::checkpoint(apply_layer)));
  const auto slopes = kept(layers, x), same = again(layers, x);
  const auto arena = [](const auto& f) { return f.report().front().arena_bytes; };
  // All that a call holds: arguments, results, and temporaries in between, of which three quarters are to do.
  std::int64_t held = arena(kept) * 3 / 4 + 4 * x.size();
  for (const Layer& layer : layers) held += 2 * 4 * (layer.up.size() + layer.down.size());
  const auto within = tw::compile(slopes_by(apply_layer), {.memory_budget = held});
  const auto also = within(layers, x);
  double worst = 0;
  bool equal = true;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    worst = std::max(
        worst, tw::max(tw::abs(slopes[i].up - same[i].up)).item() / tw::max(tw::abs(slopes[i].up)).item());
    equal = equal && tw::all(slopes[i].up == also[i].up).item() != 0;
  }
  fmt::print(
      "  temporaries of six layers: {} kB kept, {} kB made again by layers, {} kB by a budget of {} kB\n",
      arena(kept) / 1000, arena(again) / 1000, arena(within) / 1000, held / 1000);
  fmt::print("  {}\n", again.report().front().memory);
  // A budget repeats launches of the same kernels, to the same bits. checkpoint() also keeps kernels within a
  // layer, so that sums may be added up in another order.
  return arena(again) < arena(kept) / 2 && arena(within) <= arena(kept) * 3 / 4 && equal && worst < 1e-5;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 60;
  tw::Context ctx({.device = device});
  ctx.set_seed(1);
  fmt::print("types\n");
  bool right = show_types(ctx);
  fmt::print("small gradients\n");
  right = scale_losses(ctx) && right;
  fmt::print("{} steps of a GPT-2\n", steps);
  right = train_in_each(ctx, steps) && right;
  fmt::print("memory\n");
  right = save_memory(ctx) && right;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
