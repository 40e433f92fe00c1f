// What several families are made of.
#pragma once

#include "sweep/draft.h"

namespace tilewright::sweep {

// layer_norm or rms_norm of the last axis of x, with weights of its own named after `suffix`.
std::string last_axis_norm(Draft& d, const std::string& x, Index columns, bool rms,
                           const std::string& suffix = "");
// The inputs that this declares, for gradients.
std::vector<std::string> norm_weights(bool rms, const std::string& suffix = "");

// F.linear(x, w, bias): w (N, K), as torch.nn.Linear holds it, named `name`; without a bias if `bias` is
// empty.
std::string linear(Draft& d, const std::string& x, const std::string& name, Index n, Index k,
                   const std::string& bias = "");

// A loss that is a mean over so many elements, in f16 times 1,024 or, over a million, 16,384, as training in
// it has it: the gradient of such a mean is below what the type holds.
std::string scaled_loss(Draft& d, const std::string& loss, Index elements);

// F.mse_loss of y against a target that is an input; scaled.
std::string mse_loss(Draft& d, const std::string& y, const Shape& shape);

struct AttentionShape {
  Index batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, depth = 64;
};
enum class MaskKind { none, causal, window, lengths };
// Attention of q, k, v (B, H, T, D) under a mask; `lengths` is drawn as an input. PyTorch's is
// scaled_dot_product_attention.
std::string attention_of(Draft& d, const std::string& q, const std::string& k, const std::string& v,
                         const AttentionShape& at, MaskKind mask);

}  // namespace tilewright::sweep
