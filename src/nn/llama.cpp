// Llama, in plain functions of tensors.
#include <tilewright/nn/llama.h>

#include "nn/heads.h"

#include <tilewright/tensor/attention.h>

#include <fmt/format.h>

#include <cmath>

namespace tilewright::nn {

namespace {

Linear make_projection(Context& ctx, Index in, Index out, double deviation, const Location& where) {
  return {.weight = normal(ctx, {out, in}, deviation, where), .bias = {}};
}

Index kv_heads_of(const LlamaConfig& config) { return config.kv_heads == 0 ? config.heads : config.kv_heads; }

Tensor attend(const Llama::Attention& layer, const Tensor& x, const LlamaConfig& config,
              const Location& where) {
  const Index kv_heads = kv_heads_of(config);
  const auto turned = [&](const Linear& projection, Index heads) {
    return rotary(split_heads(apply(projection, x, where), heads, where), config.rotary_base, 0, where);
  };
  const Tensor v = split_heads(apply(layer.v_proj, x, where), kv_heads, where);
  const Tensor y = attention(turned(layer.q_proj, config.heads), turned(layer.k_proj, kv_heads), v,
                             {.mask = causal_mask()}, where);
  return apply(layer.o_proj, join_heads(y, where), where);
}

Tensor feed_forward(const Llama::Mlp& layer, const Tensor& x, const Location& where) {
  const Tensor gate = silu(apply(layer.gate_proj, x, where), where);
  return apply(layer.down_proj, gate * apply(layer.up_proj, x, where), where);
}

const Tensor& last_matrix(const Llama& model) {
  return model.lm_head ? model.lm_head->weight : model.model.embed_tokens.weight;
}

// llama_features() for `function`, by whose name it fails.
Tensor features(const char* function, const Llama& model, const Tensor& tokens, const LlamaConfig& config,
                const Location& where) {
  if (tokens.rank(where) != 2)
    throw Error(fmt::format("{}: tokens are {}, and must be (B, T)", function, to_string(tokens.shape())),
                where);
  check_heads(function, config.heads, model.model.embed_tokens.weight.shape(where)[1], where);
  Tensor x = apply(model.model.embed_tokens, tokens, where);
  for (const Llama::Layer& layer : model.model.layers) {
    const Tensor seen = apply(layer.input_layernorm, x, config.epsilon, where);
    x = x + attend(layer.self_attn, seen, config, where);
    const Tensor wide = apply(layer.post_attention_layernorm, x, config.epsilon, where);
    x = x + feed_forward(layer.mlp, wide, where);
  }
  return apply(model.model.norm, x, config.epsilon, where);
}

}  // namespace

Tensor rotary(const Tensor& x, double base, Index offset, const Location& where) {
  if (x.rank(where) != 4 || x.shape()[3] % 2 != 0)
    throw Error(fmt::format("rotary: x is {}, and must be (B, H, T, D) with an even D", to_string(x.shape())),
                where);
  const Index half = x.shape()[3] / 2;
  const Tensor first = slice(x, 3, {0, half}, where), second = slice(x, 3, {half, 2 * half}, where);
  // base^(-i / half), by its logarithm.
  const double step = -std::log(base) / static_cast<double>(half);
  const Tensor speed = exp(cast(positions(first, 3, where), DType::f32, where) * step, where);
  const Tensor time = cast(positions(x, 2, where) + offset, DType::f32, where);
  const Tensor angle = unsqueeze(time, 1, where) * speed;  // (T, D/2)
  const Tensor c = cos(angle, where), s = sin(angle, where);
  const Tensor a = cast(first, DType::f32, where), b = cast(second, DType::f32, where);
  return cast(concat({a * c - b * s, b * c + a * s}, 3, where), x.dtype(), where);
}

Llama make_llama(Context& ctx, const LlamaConfig& config, const Location& where) {
  const auto& c = config;
  const Index kv_heads = kv_heads_of(c);
  const auto refuse = [&](const std::string& why) { throw Error("make_llama: " + why, where); };
  if (c.layers < 1 || c.heads < 1 || kv_heads < 1 || c.width < 1)
    refuse(fmt::format("layers = {}, width = {}, heads = {}, kv_heads = {}: each must be at least 1",
                       c.layers, c.width, c.heads, kv_heads));
  if (c.width % c.heads != 0 || c.width / c.heads % 2 != 0)
    refuse(fmt::format("heads = {} must divide width = {} into an even number", c.heads, c.width));
  if (c.heads % kv_heads != 0)
    refuse(fmt::format("kv_heads = {} does not divide heads = {}", kv_heads, c.heads));
  const Index kv_width = c.width / c.heads * kv_heads;
  const auto projection = [&](Index in, Index out) {
    return make_projection(ctx, in, out, c.first_deviation, where);
  };
  const auto norm = [&] { return make_rms_norm(ctx, c.width, where); };
  Llama model;
  model.model.embed_tokens.weight = normal(ctx, {c.vocabulary, c.width}, c.first_deviation, where);
  for (Index i = 0; i < c.layers; ++i)
    model.model.layers.push_back({.input_layernorm = norm(),
                                  .self_attn = {.q_proj = projection(c.width, c.width),
                                                .k_proj = projection(c.width, kv_width),
                                                .v_proj = projection(c.width, kv_width),
                                                .o_proj = projection(c.width, c.width)},
                                  .post_attention_layernorm = norm(),
                                  .mlp = {.gate_proj = projection(c.width, c.inner),
                                          .up_proj = projection(c.width, c.inner),
                                          .down_proj = projection(c.inner, c.width)}});
  model.model.norm = norm();
  if (!c.tied) model.lm_head = projection(c.width, c.vocabulary);
  return model;
}

Tensor llama_features(const Llama& model, const Tensor& tokens, const LlamaConfig& config,
                      const Location& where) {
  return features("llama_features", model, tokens, config, where);
}

Tensor llama_logits(const Llama& model, const Tensor& tokens, const LlamaConfig& config,
                    const Location& where) {
  return matmul(features("llama_logits", model, tokens, config, where),
                swap_axes(last_matrix(model), 0, 1, where), where);
}

Tensor llama_loss(const Llama& model, const Tensor& tokens, const Tensor& targets, const LlamaConfig& config,
                  const Location& where) {
  return linear_cross_entropy(features("llama_loss", model, tokens, config, where), last_matrix(model),
                              targets, where);
}

}  // namespace tilewright::nn
