// Writes what PyTorch is to repeat: a model of f32, its logits, loss and gradients on drawn tokens, and its
// parameters after some steps of an optimizer. Usage: training_steps FILE gpt2|llama adamw|sgd DEVICE
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/llama.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <exception>

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

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 5)
      return std::string(argv[2]) == "llama" ? run<LlamaCase>(argv[1], argv[3], argv[4])
                                             : run<Gpt2Case>(argv[1], argv[3], argv[4]);
    fmt::print(stderr, "usage: training_steps FILE gpt2|llama adamw|sgd DEVICE\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "training_steps: {}\n", error.what());
  }
  return 1;
}
