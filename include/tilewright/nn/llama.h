// Llama (Touvron et al., arXiv 2302.13971, 2307.09288): parameters named as in its public checkpoints
// ("model.layers.0.self_attn.q_proj.weight"), with their shapes, so that with_tensors() takes such a file.
#pragma once

#include <tilewright/nn/layers.h>

#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

struct LlamaConfig {
  Index vocabulary = 32000, width = 4096, layers = 32, heads = 32;
  Index kv_heads = 0;   // heads of keys and values, which divide the heads; 0: as many as these
  Index inner = 11008;  // width of the feed-forward layer
  bool tied = false;    // the embedding's matrix is the last layer's, too
  double rotary_base = 10000;
  double epsilon = 1e-5;  // of the norms
  double first_deviation = 0.02;
};

struct Llama {
  struct Attention {
    Linear q_proj, k_proj, v_proj, o_proj;
    TILEWRIGHT_FIELDS(q_proj, k_proj, v_proj, o_proj)
  };
  struct Mlp {
    Linear gate_proj, up_proj, down_proj;
    TILEWRIGHT_FIELDS(gate_proj, up_proj, down_proj)
  };
  struct Layer {
    RMSNorm input_layernorm;
    Attention self_attn;
    RMSNorm post_attention_layernorm;
    Mlp mlp;
    TILEWRIGHT_FIELDS(input_layernorm, self_attn, post_attention_layernorm, mlp)
  };
  struct Model {
    Embedding embed_tokens;
    std::vector<Layer> layers;
    RMSNorm norm;
    TILEWRIGHT_FIELDS(embed_tokens, layers, norm)
  };
  Model model;
  std::optional<Linear> lm_head;  // none: tied
  TILEWRIGHT_FIELDS(model, lm_head)
};

// First parameters, f32. Throws Error where a size is below 1, where the heads do not divide the width or the
// kv_heads the heads, and where a head's width is odd.
Llama make_llama(Context& ctx, const LlamaConfig& config, const Location& where = Location::current());

// What comes out of the last norm, (B, T, width), of tokens (B, T) of integers, in the parameters' type. Of
// the config it takes heads, kv_heads, rotary_base and epsilon.
Tensor llama_features(const Llama& model, const Tensor& tokens, const LlamaConfig& config,
                      const Location& where = Location::current());
// Logits (B, T, vocabulary).
Tensor llama_logits(const Llama& model, const Tensor& tokens, const LlamaConfig& config,
                    const Location& where = Location::current());
// The mean of -log p(target) over all tokens, f32; targets (B, T) are the tokens that come next. The logits
// are in memory in pieces at most.
Tensor llama_loss(const Llama& model, const Tensor& tokens, const Tensor& targets, const LlamaConfig& config,
                  const Location& where = Location::current());

// Rotary embeddings (Su et al., arXiv 2104.09864) of x (B, H, T, D), D even, the t-th position turned by the
// angle (offset + t) / base^(2i/D) in the plane of elements i and i + D/2, as the public Llama code pairs
// them. Angles are f32; the result is of x's type. Throws Error where D is odd.
Tensor rotary(const Tensor& x, double base = 10000, Index offset = 0,
              const Location& where = Location::current());

}  // namespace tilewright::nn
#pragma GCC visibility pop
