// Writes what PyTorch is to repeat: a model of f32, its logits, loss and gradients on drawn tokens, and its
// parameters after some steps of an optimizer; or a model, the batches of a text and the losses of a training
// on them. Usage: training_steps FILE gpt2|llama adamw|sgd DEVICE, training_steps FILE curve TEXT PRECISION
// SEED STEPS DEVICE
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/llama.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/nn/schedule.h>
#include <tilewright/nn/text_data.h>
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <iterator>

namespace tw = tilewright;
namespace nn = tilewright::nn;

namespace {

constexpr tw::Index kVocabulary = 61;

// A model, and how its logits and its loss are asked for.
struct Gpt2Case {
  static constexpr nn::GPT2Config kConfig{
      .vocabulary = kVocabulary, .context = 16, .width = 24, .layers = 2, .heads = 3, .first_deviation = 0.2};
  static nn::GPT2 make(tw::Context& ctx) { return nn::make_gpt2(ctx, kConfig); }
  static tw::Tensor logits(const nn::GPT2& m, const tw::Tensor& in) {
    return nn::gpt2_logits(m, in, kConfig.heads);
  }
  static tw::Tensor loss(const nn::GPT2& m, const tw::Tensor& in, const tw::Tensor& out) {
    return nn::gpt2_loss(m, in, out, kConfig.heads);
  }
};
struct LlamaCase {
  static constexpr nn::LlamaConfig kConfig{.vocabulary = kVocabulary,
                                           .width = 24,
                                           .layers = 2,
                                           .heads = 6,
                                           .kv_heads = 3,
                                           .inner = 40,
                                           .first_deviation = 0.2};
  static nn::Llama make(tw::Context& ctx) { return nn::make_llama(ctx, kConfig); }
  static tw::Tensor logits(const nn::Llama& m, const tw::Tensor& in) {
    return nn::llama_logits(m, in, kConfig);
  }
  static tw::Tensor loss(const nn::Llama& m, const tw::Tensor& in, const tw::Tensor& out) {
    return nn::llama_loss(m, in, out, kConfig);
  }
};
constexpr int kSteps = 100;

nn::Optimizer optimizer_of(const std::string& name) {
  const nn::ParameterFilter all = [](const tw::NamedTensor&) { return true; };
  if (name == "sgd")
    return nn::sgd({.momentum = 0.9, .nesterov = true, .weight_decay = 0.01, .decayed = all});
  if (name == "adamw") return nn::adamw({.beta2 = 0.99, .weight_decay = 0.1, .decayed = all});
  throw tw::Error("training_steps: no optimizer " + name);
}

template <class Model>
void add(tw::NamedTensors& to, const std::string& prefix, const Model& tree) {
  for (const auto& [name, tensor] : tw::named_tensors(tree)) to.push_back({prefix + name, tensor});
}

template <class Case>
int run(const std::string& path, const std::string& name, const std::string& device) {
  tw::Context ctx({.device = device, .cache_directory = "", .seed = 21});
  auto model = Case::make(ctx);
  using Model = decltype(model);
  const tw::Tensor tokens = ctx.randint({4, 15}, kVocabulary), targets = ctx.randint({4, 15}, kVocabulary);
  const auto loss = [](const Model& m, const tw::Tensor& in, const tw::Tensor& out) {
    return Case::loss(m, in, out);
  };
  tw::NamedTensors out = {{"tokens", tokens}, {"targets", targets}};
  add(out, "model.", model);
  out.push_back({"logits", Case::logits(model, tokens)});
  const auto [value, gradient] = tw::compile(tw::value_and_grad(loss))(model, tokens, targets);
  out.push_back({"loss", value});
  add(out, "gradient.", gradient);

  const nn::Optimizer optimizer = optimizer_of(name);
  nn::OptimizerState<Model> state = optimizer.init(model);
  const tw::Tensor rate = ctx.scalar(name == "sgd" ? 0.02 : 1e-3);
  const auto step = tw::compile([&](const Model& m, const nn::OptimizerState<Model>& s, const tw::Tensor& r,
                                    const tw::Tensor& in, const tw::Tensor& goal) {
    const auto [error, slopes] = tw::value_and_grad(loss)(m, in, goal);
    const auto [clipped, norm] = nn::clip_by_global_norm(slopes, 1.0);
    const auto [next, state_of_next] = optimizer.update(m, clipped, s, r);
    return std::tuple{error, next, state_of_next};
  });
  std::vector<float> losses;
  losses.reserve(kSteps);
  for (int i = 0; i < kSteps; ++i) {
    tw::Tensor error;
    std::tie(error, model, state) = step(model, state, rate, tokens, targets);
    losses.push_back(static_cast<float>(error.item()));
  }
  out.push_back({"losses", ctx.from(losses, {kSteps})});
  add(out, "after.", model);
  tw::save_safetensors(path, out);
  return 0;
}

// A training as tw train makes it, small enough for minutes on two cores of PyTorch.
struct Curve {
  static constexpr nn::GPT2Config kConfig{
      .vocabulary = 0, .context = 64, .width = 64, .layers = 2, .heads = 4};
  static constexpr tw::Index kRows = 12;
  std::string text;
  tw::Precision precision = tw::Precision::f32;
  std::uint64_t seed = 1;
  int steps = 300;
  std::string device;
};

int run_curve(const std::string& path, const Curve& c) {
  tw::Context ctx({.device = c.device, .cache_directory = "", .seed = c.seed});
  std::ifstream file(c.text, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const nn::ByteVocabulary vocabulary(text);
  const std::vector<std::int32_t> bytes = vocabulary.encode(text);
  nn::GPT2Config config = Curve::kConfig;
  config.vocabulary = vocabulary.size();
  nn::GPT2 model = nn::make_gpt2(ctx, config);
  tw::NamedTensors out;
  add(out, "model.", tw::map_tensors([](const tw::Tensor& t) { return t + 0.f; }, model));

  const nn::Optimizer optimizer = nn::adamw({.beta2 = 0.99, .weight_decay = 0.1});
  nn::OptimizerState<nn::GPT2> state = optimizer.init(model);
  const auto step = tw::compile(
      [&](const nn::GPT2& m, const nn::OptimizerState<nn::GPT2>& s, const tw::Tensor& r, const tw::Tensor& in,
          const tw::Tensor& goal) {
        const auto loss = [&](const nn::GPT2& p) { return nn::gpt2_loss(p, in, goal, config.heads); };
        const auto [error, slopes] = tw::value_and_grad(loss)(m);
        const auto [next, state_of_next] =
            optimizer.update(m, nn::clip_by_global_norm(slopes, 1.0).first, s, r);
        return std::tuple{error, next, state_of_next};
      },
      {.precision = c.precision, .donate = {0, 1}});
  const nn::ScheduleOptions schedule{.rate = 3e-3, .last_rate = 3e-4, .warmup = 20, .steps = c.steps};
  std::vector<float> losses, rates;
  std::vector<tw::Tensor> tokens, targets;
  for (int i = 0; i < c.steps; ++i) {
    const nn::Batch batch =
        nn::random_batch(ctx, bytes, Curve::kRows, config.context, c.seed, static_cast<std::uint64_t>(i));
    const double rate = nn::cosine_rate(schedule, i);
    tw::Tensor error;
    std::tie(error, model, state) = step(model, state, ctx.scalar(rate), batch.tokens, batch.targets);
    losses.push_back(static_cast<float>(error.item()));
    rates.push_back(static_cast<float>(rate));
    tokens.push_back(tw::cast(batch.tokens, tw::DType::i64));
    targets.push_back(tw::cast(batch.targets, tw::DType::i64));
  }
  out.push_back({"tokens", tw::stack(tokens)});
  out.push_back({"targets", tw::stack(targets)});
  out.push_back({"losses", ctx.from(losses, {c.steps})});
  out.push_back({"rates", ctx.from(rates, {c.steps})});
  tw::save_safetensors(path, out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 8 && std::string(argv[2]) == "curve")
      return run_curve(argv[1], {.text = argv[3],
                                 .precision = tw::parse_precision(argv[4]).value(),
                                 .seed = std::stoull(argv[5]),
                                 .steps = std::stoi(argv[6]),
                                 .device = argv[7]});
    if (argc == 5)
      return std::string(argv[2]) == "llama" ? run<LlamaCase>(argv[1], argv[3], argv[4])
                                             : run<Gpt2Case>(argv[1], argv[3], argv[4]);
    fmt::print(stderr,
               "usage: training_steps FILE gpt2|llama adamw|sgd DEVICE\n"
               "       training_steps FILE curve TEXT PRECISION SEED STEPS DEVICE\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "training_steps: {}\n", error.what());
  }
  return 1;
}
