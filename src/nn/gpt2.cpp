// GPT-2, in plain functions of tensors.
#include <tilewright/nn/gpt2.h>

#include "nn/heads.h"

#include <tilewright/tensor/attention.h>

#include <fmt/format.h>

#include <cmath>

namespace tilewright::nn {

namespace {

Conv1D make_conv1d(Context& ctx, Index in, Index out, double deviation, bool bias, const Location& where) {
  Conv1D layer{.weight = normal(ctx, {in, out}, deviation, where), .bias = {}};
  if (bias) layer.bias = ctx.zeros({out}, DType::f32, where);
  return layer;
}

Tensor attend(const GPT2::Attention& layer, const Tensor& x, Index heads, Dropout& dropout,
              const Location& where) {
  const Index width = x.shape(where)[2];
  const std::vector<Tensor> qkv = split(apply(layer.c_attn, x, where), 2, {width, width, width}, where);
  AttentionOptions options{.mask = causal_mask()};
  if (dropout.drops()) {
    options.dropout = dropout.probability();
    options.seed = dropout.next_key(where);
  }
  const Tensor y = attention(split_heads(qkv[0], heads, where), split_heads(qkv[1], heads, where),
                             split_heads(qkv[2], heads, where), options, where);
  return apply(layer.c_proj, join_heads(y, where), where);
}

// gpt2_features() for `function`, by whose name it fails.
Tensor features(const char* function, const GPT2& model, const Tensor& tokens, Index heads, Dropout dropout,
                const Location& where) {
  const Shape table = model.wpe.weight.shape(where);
  const Index context = table[0];
  if (tokens.rank(where) != 2 || tokens.shape()[1] > context)
    throw Error(fmt::format("{}: tokens are {}, and must be (B, T) with T at most the context, {}", function,
                            to_string(tokens.shape()), context),
                where);
  check_heads(function, heads, table[1], where);
  const Index length = tokens.shape()[1];
  const Tensor places = slice(model.wpe.weight, 0, {0, length}, where);
  Tensor x = dropout(add({apply(model.wte, tokens, where), where}, {places, where}, where), where);
  for (const GPT2::Block& block : model.h) {
    const Tensor attended = attend(block.attn, apply(block.ln_1, x, 1e-5, where), heads, dropout, where);
    x = add({x, where}, {dropout(attended, where), where}, where);
    const Tensor wide = gelu_tanh(apply(block.mlp.c_fc, apply(block.ln_2, x, 1e-5, where), where), where);
    x = add({x, where}, {dropout(apply(block.mlp.c_proj, wide, where), where), where}, where);
  }
  return apply(model.ln_f, x, 1e-5, where);
}

}  // namespace

GPT2 make_gpt2(Context& ctx, const GPT2Config& config, const Location& where) {
  const auto& [vocabulary, context, width, layers, heads, bias, deviation] = config;
  if (layers < 1 || heads < 1 || width < 1 || width % heads != 0)
    throw Error(
        fmt::format("make_gpt2: {} layers of width {} with {} heads: each must be at least 1, and the "
                    "heads must divide the width",
                    layers, width, heads),
        where);
  const double into_stream = deviation / std::sqrt(2.0 * static_cast<double>(layers));
  GPT2 model{.wte = make_embedding(ctx, vocabulary, width, where),
             .wpe = make_embedding(ctx, context, width, where),
             .h = {},
             .ln_f = make_layer_norm(ctx, width, bias, where)};
  for (Embedding* table : {&model.wte, &model.wpe})
    table->weight = normal(ctx, table->weight.shape(), deviation, where);
  for (Index i = 0; i < layers; ++i)
    model.h.push_back({.ln_1 = make_layer_norm(ctx, width, bias, where),
                       .attn = {.c_attn = make_conv1d(ctx, width, 3 * width, deviation, bias, where),
                                .c_proj = make_conv1d(ctx, width, width, into_stream, bias, where)},
                       .ln_2 = make_layer_norm(ctx, width, bias, where),
                       .mlp = {.c_fc = make_conv1d(ctx, width, 4 * width, deviation, bias, where),
                               .c_proj = make_conv1d(ctx, 4 * width, width, into_stream, bias, where)}});
  return model;
}

Tensor gpt2_features(const GPT2& model, const Tensor& tokens, Index heads, Dropout dropout,
                     const Location& where) {
  return features("gpt2_features", model, tokens, heads, std::move(dropout), where);
}

Tensor gpt2_logits(const GPT2& model, const Tensor& tokens, Index heads, Dropout dropout,
                   const Location& where) {
  const Tensor x = features("gpt2_logits", model, tokens, heads, std::move(dropout), where);
  return matmul(x, swap_axes(model.wte.weight, 0, 1, where), where);
}

Tensor gpt2_loss(const GPT2& model, const Tensor& tokens, const Tensor& targets, Index heads, Dropout dropout,
                 const Location& where) {
  const Tensor x = features("gpt2_loss", model, tokens, heads, std::move(dropout), where);
  return linear_cross_entropy(x, model.wte.weight, targets, where);
}

}  // namespace tilewright::nn
