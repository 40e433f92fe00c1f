// GPT-2 (Radford et al., 2019): parameters named as in its public checkpoints ("h.0.attn.c_attn.weight"),
// with their shapes, so that with_tensors() takes such a file.
#pragma once

#include <tilewright/nn/layers.h>

#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

struct GPT2Config {
  Index vocabulary = 50257, context = 1024, width = 768, layers = 12, heads = 12;
  bool bias = true;  // of the products and norms
  double first_deviation =
      0.02;  // of first weights; of the products into the residual stream over √(2 layers)
};

struct GPT2 {
  struct Attention {
    Conv1D c_attn, c_proj;
    TILEWRIGHT_FIELDS(c_attn, c_proj)
  };
  struct Mlp {
    Conv1D c_fc, c_proj;
    TILEWRIGHT_FIELDS(c_fc, c_proj)
  };
  struct Block {
    LayerNorm ln_1;
    Attention attn;
    LayerNorm ln_2;
    Mlp mlp;
    TILEWRIGHT_FIELDS(ln_1, attn, ln_2, mlp)
  };
  Embedding wte, wpe;
  std::vector<Block> h;
  LayerNorm ln_f;
  TILEWRIGHT_FIELDS(wte, wpe, h, ln_f)
};

// First parameters, f32. Throws Error where a size is below 1 and where the heads do not divide the width.
GPT2 make_gpt2(Context& ctx, const GPT2Config& config, const Location& where = Location::current());

// What comes out of the last norm, (B, T, width), of tokens (B, T) of integers, T at most the context, in the
// parameters' type. `heads` is the config's; `dropout` falls on the embeddings, the attention's weights and
// the two sums into the residual stream of each block. Throws Error where T is more than the context.
Tensor gpt2_features(const GPT2& model, const Tensor& tokens, Index heads, Dropout dropout = {},
                     const Location& where = Location::current());
// Logits (B, T, vocabulary): the embedding's matrix is the last layer's, too.
Tensor gpt2_logits(const GPT2& model, const Tensor& tokens, Index heads, Dropout dropout = {},
                   const Location& where = Location::current());
// The mean of -log p(target) over all tokens, f32; targets (B, T) are the tokens that come next. The logits
// are in memory in pieces at most.
Tensor gpt2_loss(const GPT2& model, const Tensor& tokens, const Tensor& targets, Index heads,
                 Dropout dropout = {}, const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
